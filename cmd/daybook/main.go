// Command daybook is the one binary: the broker (`daybook serve`) and the tools
// around it. This package holds flags, help texts and argument checks; what the
// commands do lives in internal/cli, internal/bench, internal/doctor and
// internal/app.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/daybook-mq/daybook/internal/cli"
)

func main() {
	// A reader that goes away (`daybook consume t | head`) is an error of that
	// write, so that a group is left and offsets are committed on the way out.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	os.Exit(run(ctx, cli.NewGlobals(), os.Args[1:]))
}

// run carries out one command line and gives its exit code. A context that is
// over means that the user interrupted.
func run(ctx context.Context, g *cli.Globals, args []string) int {
	root := newRoot(g)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return cli.Report(g.Err, cmd.CommandPath(), err, ctx.Err() != nil)
}
