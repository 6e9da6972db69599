package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Serve runs a broker until ctx is over or the broker cannot go on, then stops it.
// The start block goes to out.
func Serve(ctx context.Context, o Options, out io.Writer) error {
	b, err := Start(ctx, o)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, b.startBlock()); err != nil {
		b.log.Warn("start block not printed", "err", err)
	}
	var cause error
	select {
	case <-ctx.Done():
		b.log.Info("stopping", "deadline", o.Config.ShutdownTimeout)
	case cause = <-b.Fatal():
		b.log.Error("stopping: the broker cannot go on", "err", cause)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Config.ShutdownTimeout)
	defer cancel()
	begin := time.Now()
	stopErr := b.Stop(stopCtx)
	if cause != nil {
		return cause
	}
	if stopErr != nil {
		return fmt.Errorf("not a clean stop: %w; acknowledged data is safe, the next start replays the journal", stopErr)
	}
	b.log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// startBlock is what a person sees once the broker serves.
func (b *Broker) startBlock() string {
	var s strings.Builder
	c := b.o.Config
	row := func(name, value string) { fmt.Fprintf(&s, "  %-9s %s\n", name, value) }
	fmt.Fprintf(&s, "Daybook %s is ready in %s\n", b.o.Version, b.ready.Round(time.Millisecond))
	row("kafka", orOff(b.addrs.Kafka))
	row("http", httpRow(b.addrs.HTTP))
	row("data", c.DataDir)
	row("sync", c.Sync.String())
	return s.String()
}

func orOff(addr string) string {
	if addr == "" {
		return "off"
	}
	return addr
}

func httpRow(addr string) string {
	if addr == "" {
		return "off"
	}
	return "http://" + addr + "  (/metrics /healthz /readyz /debug/pprof/)"
}
