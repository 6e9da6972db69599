// Package cli is what Daybook's subcommands share: the options every command
// has, the connection to a broker, how results are printed, and how a failure
// becomes a message and an exit code. The subcommands' own logic lives in the
// packages below it, one per noun; their flags live in cmd/daybook. It speaks
// the public Kafka protocol only and knows nothing of Daybook's storage.
package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// DefaultBootstrap is where `daybook serve` listens when told nothing.
const DefaultBootstrap = "127.0.0.1:9092"

// Globals are the options that every command has, and the streams it works on.
type Globals struct {
	Bootstrap string        // host:port, several separated by commas
	Output    string        // "table" or "json"
	Timeout   time.Duration // for one administrative request, retries included
	Security  Security

	In       io.Reader
	Out, Err io.Writer
}

// NewGlobals are the defaults: the process's own streams, and what the
// environment says.
func NewGlobals() *Globals {
	return &Globals{
		Bootstrap: envOr("DAYBOOK_BOOTSTRAP", DefaultBootstrap),
		Output:    envOr("DAYBOOK_OUTPUT", "table"),
		Timeout:   15 * time.Second,
		Security:  securityFromEnv(),
		In:        os.Stdin,
		Out:       os.Stdout,
		Err:       os.Stderr,
	}
}

// Validate checks the options' values once flags are parsed.
func (g *Globals) Validate() error {
	if g.Output != "table" && g.Output != "json" {
		return Usagef("--output is %q: it must be table or json", g.Output)
	}
	if g.Timeout <= 0 {
		return Usagef("--timeout is %s: it must be more than zero, e.g. --timeout 15s", g.Timeout)
	}
	if len(g.Seeds()) == 0 {
		return Usagef("--bootstrap is empty: name at least one broker, e.g. --bootstrap %s", DefaultBootstrap)
	}
	return g.Security.validate()
}

// Seeds are the bootstrap addresses.
func (g *Globals) Seeds() []string {
	var seeds []string
	for s := range strings.SplitSeq(g.Bootstrap, ",") {
		if s = strings.TrimSpace(s); s != "" {
			seeds = append(seeds, s)
		}
	}
	return seeds
}

// JSON reports whether results are to be printed as JSON.
func (g *Globals) JSON() bool { return g.Output == "json" }

// Interactive reports whether w is a terminal that a person watches.
func Interactive(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func envOr(key, fallback string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return fallback
}
