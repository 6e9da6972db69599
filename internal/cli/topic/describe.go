package topic

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/configs"
)

// Description is a topic in full.
type Description struct {
	Summary
	Records    int64            `json:"records"` // offsets between start and end, markers and compacted ones included
	Details    []Partition      `json:"partition_details"`
	ConfigsSet []configs.Config `json:"configs"` // those that differ from the default, or all when asked
}

// Partition is one partition of a Description.
type Partition struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"`
	LeaderEpoch int32   `json:"leader_epoch"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"in_sync_replicas"`
	Start       int64   `json:"start_offset"`
	End         int64   `json:"end_offset"`
	Records     int64   `json:"records"`
}

// Describe prints topics in full: partitions with their offsets, and the
// settings with the place each comes from.
func Describe(ctx context.Context, g *cli.Globals, names []string, allConfigs bool) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	details, err := conn.Topics(ctx, names...)
	if err != nil {
		return err
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, names...)
	if err != nil {
		return err
	}
	settings, err := configs.Effective(ctx, conn, configs.Topic, false, names...)
	if err != nil {
		return err
	}
	out := make([]Description, 0, len(names))
	for _, t := range details.Sorted() {
		d := Description{
			Summary:    Summary{t.Topic, idText(t.ID), len(t.Partitions), t.Partitions.NumReplicas(), t.IsInternal},
			ConfigsSet: []configs.Config{},
		}
		for _, p := range t.Partitions.Sorted() {
			span := spans[t.Topic][p.Partition]
			d.Details = append(d.Details, Partition{p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR, span.Start, span.End, span.Records()})
			d.Records += span.Records()
		}
		for _, c := range settings[t.Topic] {
			if allConfigs || !c.Default {
				d.ConfigsSet = append(d.ConfigsSet, c)
			}
		}
		out = append(out, d)
	}
	return g.Print(out, func(w io.Writer) error {
		for i, d := range out {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := d.write(w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d Description) write(w io.Writer) error {
	fmt.Fprintf(w, "Topic:     %s (id %s)\n", d.Name, d.ID)
	fmt.Fprintf(w, "Records:   %s in %s\n\n", cli.Count(d.Records), cli.Plural(int64(d.Partitions), "partition"))
	table := cli.NewTable(">PARTITION", ">LEADER", ">EPOCH", "REPLICAS", "IN SYNC", ">START", ">END", ">RECORDS")
	for _, p := range d.Details {
		table.Row(p.Partition, p.Leader, p.LeaderEpoch, ids(p.Replicas), ids(p.ISR), p.Start, p.End, p.Records)
	}
	if _, err := table.WriteTo(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(d.ConfigsSet) == 0 {
		fmt.Fprintln(w, "All configs have their defaults; --all-configs shows them.")
		return nil
	}
	return configs.Write(w, d.ConfigsSet)
}

func ids(list []int32) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(int(n))
	}
	return strings.Join(words, ",")
}
