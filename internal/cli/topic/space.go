package topic

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Size is what a partition takes on a broker's disk.
type Size struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Broker    int32  `json:"broker"`
	Bytes     int64  `json:"bytes"`
	Records   int64  `json:"records"`
}

// Sizes prints what topics take on disk, the largest first; for one topic, or
// when asked, by partition.
func Sizes(ctx context.Context, g *cli.Globals, names []string, byPartition bool) error {
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
	dirs, err := conn.Admin.DescribeAllLogDirs(ctx, details.TopicsSet())
	if err != nil {
		return cli.Failed("ask for sizes", err)
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, details.Names()...)
	if err != nil {
		return err
	}
	var out []Size
	var bad error
	dirs.Each(func(d kadm.DescribedLogDir) {
		if d.Err != nil {
			bad = cli.Refused(fmt.Sprintf("ask broker %d for sizes", d.Broker), d.Err, "")
		}
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			out = append(out, Size{p.Topic, p.Partition, p.Broker, p.Size, spans[p.Topic][p.Partition].Records()})
		})
	})
	if bad != nil {
		return bad
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		switch {
		case a.Bytes != b.Bytes:
			return a.Bytes > b.Bytes
		case a.Topic != b.Topic:
			return a.Topic < b.Topic
		}
		return a.Partition < b.Partition
	})
	return g.Print(out, func(w io.Writer) error {
		if byPartition || len(names) == 1 {
			table := cli.NewTable("TOPIC", ">PARTITION", ">BROKER", ">SIZE", ">RECORDS")
			for _, s := range out {
				table.Row(s.Topic, s.Partition, s.Broker, cli.Bytes(s.Bytes), s.Records)
			}
			_, err := table.WriteTo(w)
			return err
		}
		return writeTopicSizes(w, out)
	})
}

func writeTopicSizes(w io.Writer, sizes []Size) error {
	bytes, records, partitions := map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, s := range sizes {
		bytes[s.Topic] += s.Bytes
		records[s.Topic] += s.Records
		partitions[s.Topic]++
	}
	names := sortedKeys(bytes)
	sort.SliceStable(names, func(i, j int) bool { return bytes[names[i]] > bytes[names[j]] })
	table := cli.NewTable("TOPIC", ">PARTITIONS", ">SIZE", ">RECORDS")
	for _, n := range names {
		table.Row(n, partitions[n], cli.Bytes(bytes[n]), records[n])
	}
	_, err := table.WriteTo(w)
	return err
}

// TrimOptions say up to where records are dropped.
type TrimOptions struct {
	Before     string // a position, as cli.ParsePosition reads it
	Partitions []int32
	DryRun     bool
	Yes        bool
}

// Trimmed is one partition after `topic trim`.
type Trimmed struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"old_start_offset"`
	To        int64  `json:"new_start_offset"`
	Records   int64  `json:"records_dropped"`
	DryRun    bool   `json:"dry_run"`
}

// Trim drops the records before a position (DeleteRecords): the partition then
// starts there.
func Trim(ctx context.Context, g *cli.Globals, topic string, o TrimOptions) error {
	if o.Before == "" {
		return cli.Usagef("--before is missing: say up to where to drop, e.g. --before -7d or --before end")
	}
	before, err := cli.ParsePosition(o.Before, time.Now())
	if err != nil {
		return cli.Usagef("--before %v", err)
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	plan, err := planTrim(ctx, g, conn, topic, before, o)
	if err != nil {
		return err
	}
	var dropped int64
	offsets := kadm.Offsets{}
	for _, t := range plan {
		dropped += t.Records
		offsets.AddOffset(t.Topic, t.Partition, t.To, -1)
	}
	if !o.DryRun && dropped > 0 {
		if err := g.Confirm(ctx, o.Yes, fmt.Sprintf("This drops %s of topic %s for good.", cli.Plural(dropped, "record"), topic)); err != nil {
			return err
		}
		limited, cancel := g.Limit(ctx)
		defer cancel()
		answers, err := conn.Admin.DeleteRecords(limited, offsets)
		if err != nil {
			return cli.Failed("trim "+topic, err)
		}
		for i, t := range plan {
			a, _ := answers.Lookup(t.Topic, t.Partition)
			if a.Err != nil {
				return cli.Refused(fmt.Sprintf("trim %s-%d", t.Topic, t.Partition), a.Err, "")
			}
			plan[i].To = a.LowWatermark
			plan[i].Records = a.LowWatermark - t.From
		}
	}
	return g.Print(plan, func(w io.Writer) error {
		table := cli.NewTable("TOPIC", ">PARTITION", ">OLD START", ">NEW START", ">DROPPED")
		for _, t := range plan {
			table.Row(t.Topic, t.Partition, t.From, t.To, t.Records)
		}
		_, err := table.WriteTo(w)
		if o.DryRun {
			g.Note("Nothing was dropped (--dry-run).")
		}
		return err
	})
}

func planTrim(ctx context.Context, g *cli.Globals, conn *cli.Conn, topic string, before cli.Position, o TrimOptions) ([]Trimmed, error) {
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	if _, err := conn.Topics(ctx, topic); err != nil {
		return nil, err
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, topic)
	if err != nil {
		return nil, err
	}
	if err := keepPartitions(spans, topic, o.Partitions); err != nil {
		return nil, err
	}
	to, err := before.Resolve(ctx, conn.Admin, spans)
	if err != nil {
		return nil, err
	}
	plan := []Trimmed{}
	for _, p := range sortedKeys(spans[topic]) {
		from := spans[topic][p].Start
		plan = append(plan, Trimmed{topic, p, from, to[topic][p], to[topic][p] - from, o.DryRun})
	}
	return plan, nil
}

// keepPartitions leaves only the wanted partitions of a topic in spans; none
// wanted means all.
func keepPartitions(spans cli.Spans, topic string, wanted []int32) error {
	if len(wanted) == 0 {
		return nil
	}
	kept := make(map[int32]cli.Span, len(wanted))
	for _, p := range wanted {
		span, ok := spans[topic][p]
		if !ok {
			return cli.Usagef("topic %s has no partition %d; its partitions are 0 to %d", topic, p, len(spans[topic])-1)
		}
		kept[p] = span
	}
	spans[topic] = kept
	return nil
}
