// Package doctor is what `daybook doctor` does: named checks of the machine, the
// data directory and the broker, each with what was found and the command that
// mends it. It changes nothing: the only file it writes is a small one of its
// own, to time the disk. It works beside a running broker and before a first
// start.
package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Status is how a check came out.
type Status string

// The statuses, best first.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"` // what to do, a command where there is one
}

// Options say what to look at.
type Options struct {
	Data   string // the broker's data directory
	HTTP   string // the broker's metrics and health pages, without a path; "" for none
	Format int    // the format of data directories that this binary writes
}

// Report is the result of all checks.
type Report struct {
	Status   Status    `json:"status"` // the worst
	Findings []Finding `json:"findings"`
}

// exam is one run of the checks; later checks use what earlier ones found.
type exam struct {
	g *cli.Globals
	o Options

	findings []Finding
	inUse    bool // another process holds the data directory
	answers  bool // a broker answers at the bootstrap address
	metrics  cli.Metrics
	clock    time.Time // the broker's, when it tells
}

// checks in the order of the report: from the disk up to the clients' view.
var checks = []func(*exam, context.Context){
	(*exam).directory,
	(*exam).lock,
	(*exam).format,
	(*exam).fileSystem,
	(*exam).room,
	(*exam).fsync,
	(*exam).descriptors,
	(*exam).broker,
	(*exam).ports,
	(*exam).ready,
	(*exam).sync,
	(*exam).advertised,
	(*exam).time,
}

func (e *exam) add(check string, s Status, remedy, found string, args ...any) {
	e.findings = append(e.findings, Finding{Check: check, Status: s, Found: fmt.Sprintf(found, args...), Remedy: remedy})
}

// Examine runs every check.
func Examine(ctx context.Context, g *cli.Globals, o Options) Report {
	e := &exam{g: g, o: o}
	for _, check := range checks {
		if ctx.Err() != nil {
			break
		}
		check(e, ctx)
	}
	r := Report{Status: OK, Findings: e.findings}
	for _, f := range e.findings {
		if f.Status == Fail || f.Status == Warn && r.Status == OK {
			r.Status = f.Status
		}
	}
	return r
}

// Run runs every check, prints what they found, and fails when one of them did.
func Run(ctx context.Context, g *cli.Globals, o Options) error {
	r := Examine(ctx, g, o)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := g.Print(r, func(w io.Writer) error { return r.write(g, w) }); err != nil {
		return err
	}
	if r.Status == Fail {
		return cli.ErrSilent
	}
	return nil
}

func (r Report) write(g *cli.Globals, w io.Writer) error {
	colours := map[Status]cli.Colour{OK: cli.Green, Warn: cli.Yellow, Fail: cli.Red}
	table := cli.NewTable("CHECK", "STATUS", "FOUND")
	for _, f := range r.Findings {
		table.Row(f.Check, g.Paint(colours[f.Status], string(f.Status)), f.Found)
	}
	if _, err := table.WriteTo(w); err != nil {
		return err
	}
	first := true
	for _, f := range r.Findings {
		if f.Remedy == "" {
			continue
		}
		if first {
			fmt.Fprintln(w, "\nWhat to do:")
			first = false
		}
		fmt.Fprintf(w, "  %s: %s\n", f.Check, f.Remedy)
	}
	return nil
}
