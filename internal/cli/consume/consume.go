// Package consume is what `daybook consume` does: it reads records from topics,
// alone or as a member of a group, and prints them. It owns where reading
// begins and ends, and that a group's offsets are committed only after their
// records are printed; the forms of a record are package record's.
package consume

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/record"
)

// Options say what to read and how to print it.
type Options struct {
	Topics     []string
	From, To   string // positions; "" is the default of the mode
	Group      string
	Share      string // a share group (KIP-932)
	Protocol   string // of the group: classic or consumer
	Follow     bool
	Count      int64 // stop after so many records; 0 is no limit
	Format     string
	Null       string
	Partitions []int32
	Isolation  string // committed or uncommitted
}

// Run reads and prints until the end, the count, or an interruption.
func Run(ctx context.Context, g *cli.Globals, o Options) error {
	now := time.Now()
	p, err := o.validate(g, now)
	if err != nil {
		return err
	}
	switch {
	case o.Group != "":
		return p.group(ctx, g)
	case o.Share != "":
		return p.share(ctx, g)
	}
	return p.alone(ctx, g)
}

// plan is what the options come to.
type plan struct {
	Options
	from, to  cli.Position
	bounded   bool // there is an end
	print     record.Printer
	isolation kgo.IsolationLevel
}

func (o Options) validate(g *cli.Globals, now time.Time) (*plan, error) {
	p := &plan{Options: o, from: cli.Start, to: cli.End, bounded: !o.Follow || o.To != ""}
	if g.JSON() && o.Format == "" {
		p.Format = "json"
	}
	var err error
	if p.print, err = record.Named(p.Format, o.Null); err != nil {
		return nil, cli.Usagef("--format: %v", err)
	}
	if o.Follow {
		p.from = cli.End
	}
	if o.From != "" {
		if p.from, err = cli.ParsePosition(o.From, now); err != nil {
			return nil, cli.Usagef("--from: %v", err)
		}
	}
	if o.To != "" {
		if p.to, err = cli.ParsePosition(o.To, now); err != nil {
			return nil, cli.Usagef("--to: %v", err)
		}
	}
	if p.isolation, err = cli.Isolation(o.Isolation); err != nil {
		return nil, err
	}
	switch {
	case o.Count < 0:
		return nil, cli.Usagef("--count is %d: it must be 0 (no limit) or more", o.Count)
	case o.Group != "" && len(o.Partitions) > 0:
		return nil, cli.Usagef("--partition and --group exclude each other: a group shares the partitions out itself")
	case o.Group != "" && o.To != "":
		return nil, cli.Usagef("--to and --group exclude each other; use --count, or no --follow to stop at the end")
	case o.Share != "" && (o.Group != "" || len(o.Partitions) > 0 || o.From != "" || o.To != ""):
		return nil, cli.Usagef("--share excludes --group, --partition, --from and --to: the broker hands the records out; `daybook group alter %s --set share.auto.offset.reset=earliest` says where it begins", o.Share)
	case len(o.Partitions) > 0 && len(o.Topics) > 1:
		return nil, cli.Usagef("--partition goes with one topic only")
	case o.Protocol != "classic" && o.Protocol != "consumer":
		return nil, cli.Usagef("--group-protocol is %q: it must be classic or consumer", o.Protocol)
	}
	return p, nil
}

func (p *plan) clientOptions(link *cli.Link) []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchIsolationLevel(p.isolation),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.KeepControlRecords(), // they move the position; they are not printed
		kgo.WithHooks(link),
	}
}

// output prints records and counts them.
type output struct {
	w     *bufio.Writer
	print record.Printer
	buf   []byte
	n     int64
	limit int64
}

func (p *plan) output(g *cli.Globals) *output {
	return &output{w: bufio.NewWriterSize(g.Out, 64<<10), print: p.print, limit: p.Count}
}

// write prints r unless it is a transaction marker.
func (o *output) write(r *kgo.Record) error {
	if r.Attrs.IsControl() {
		return nil
	}
	o.buf = o.print(o.buf[:0], r)
	o.n++
	_, err := o.w.Write(o.buf)
	return err
}

// full reports whether the count is reached.
func (o *output) full() bool { return o.limit > 0 && o.n >= o.limit }

// fetchError is the first error of fetches that retrying does not mend.
func fetchError(fetches kgo.Fetches) error {
	var first error
	fetches.EachError(func(topic string, partition int32, err error) {
		if first != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return
		}
		if loss, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
			first = cli.Hintf(fmt.Errorf("%s-%d: %w", topic, partition, loss), "The topic lost records or was made anew while it was read; run the command again.")
			return
		}
		what := "read " + topic
		if topic == "" {
			what = "read"
		}
		first = cli.Failed(what, err)
	})
	return first
}

// giveUp is the error once a command that should end has had no broker for too
// long.
func giveUp(g *cli.Globals, link *cli.Link) error {
	if link.DownFor() < g.Timeout {
		return nil
	}
	return cli.Hintf(fmt.Errorf("no broker has answered for %s", g.Timeout),
		"Look whether it runs (`daybook doctor`), or wait longer with --timeout.")
}
