package group

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Describe prints groups in full: members, what each is assigned, and lag.
func Describe(ctx context.Context, g *cli.Globals, names []string, isolationName string, limits Limits) error {
	isolation, err := cli.Isolation(isolationName)
	if err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	details, err := describe(ctx, conn, names...)
	if err != nil {
		return err
	}
	for _, d := range details {
		d.Partitions = []Lag{}
		if d.Type == typeShare {
			err = measureShare(ctx, conn, d)
		} else {
			err = measure(ctx, conn, d, isolation, limits, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return g.Print(details, func(w io.Writer) error {
		for i, d := range details {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := d.write(g, w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *Detail) write(g *cli.Globals, w io.Writer) error {
	fmt.Fprintf(w, "Group:     %s\nType:      %s\nState:     %s\n", d.Group, d.Type, d.State)
	if d.Assignor != "" {
		fmt.Fprintf(w, "Assignor:  %s\n", d.Assignor)
	}
	fmt.Fprintf(w, "Members:   %d\n", len(d.Members))
	if len(d.Members) > 0 {
		fmt.Fprintln(w)
		table := cli.NewTable("MEMBER", "CLIENT", "HOST", "INSTANCE", "ASSIGNED")
		for _, m := range d.Members {
			table.Row(m.ID, m.Client, m.Host, m.Instance, m.assigned())
		}
		if _, err := table.WriteTo(w); err != nil {
			return err
		}
	}
	if len(d.Partitions) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return writeLags(g, w, d.Partitions)
}

func (m *Member) assigned() string {
	names := make([]string, 0, len(m.Assigned))
	for t := range m.Assigned {
		names = append(names, t)
	}
	sort.Strings(names)
	text := ""
	for i, t := range names {
		if i > 0 {
			text += " "
		}
		text += t + ":" + m.Assigned[t].String()
	}
	return text
}

// measureShare fills in where a share group's reading starts, and its lag as
// the broker tells it (KIP-932, KIP-1226).
func measureShare(ctx context.Context, conn *cli.Conn, d *Detail) error {
	all, err := conn.Admin.DescribeShareGroupOffsets(ctx, d.Group)
	if err != nil {
		return cli.Failed("ask for the offsets of group "+d.Group, err)
	}
	owners := d.owners()
	for _, of := range all {
		if of.Err != nil {
			return cli.Refused("ask for the offsets of group "+d.Group, of.Err, "")
		}
		for _, o := range of.Offsets.Sorted() {
			l := Lag{Group: d.Group, Topic: o.Topic, Partition: o.Partition, Start: o.StartOffset, State: StateUnknown}
			if o.StartOffset >= 0 {
				l.Committed = &o.StartOffset
			}
			if o.Lag >= 0 {
				l.Messages, l.State, l.End = &o.Lag, StateOK, o.StartOffset+o.Lag
			}
			if m := owners[o.Topic][o.Partition]; m != nil {
				l.Member, l.Client, l.Host = m.ID, m.Client, m.Host
			}
			d.Partitions = append(d.Partitions, l)
		}
	}
	return nil
}
