package group

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// ResetOptions say which offsets go where. Exactly one of the targets is set.
type ResetOptions struct {
	Topics    []string // "orders" or "orders:0,2"
	AllTopics bool     // every topic the group has committed offsets for

	ToStart, ToEnd, ToCurrent bool
	ToOffset                  *int64
	ToTime                    string
	ByDuration                string
	ShiftBy                   *int64
	FromFile                  string // topic,partition,offset on each line

	Execute bool
	Export  bool // print the plan as lines for FromFile
}

// Move is one partition's offset before and after a reset.
type Move struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Current   *int64 `json:"current_offset"` // null when nothing was committed
	New       int64  `json:"new_offset"`
	Applied   bool   `json:"applied"`
}

// Reset moves a group's committed offsets, or shows how it would. It refuses
// while the group has members: they would commit over it.
func Reset(ctx context.Context, g *cli.Globals, group string, o ResetOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	named, err := o.named()
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
	at, err := idleOffsets(ctx, conn, group)
	if err != nil {
		return err
	}
	moves, err := o.plan(ctx, conn, at, named)
	if err != nil {
		return err
	}
	if o.Execute {
		if err := at.apply(ctx, conn, moves); err != nil {
			return err
		}
	}
	if o.Export {
		return export(g.Out, moves)
	}
	return g.Print(moves, func(w io.Writer) error {
		table := cli.NewTable("TOPIC", ">PARTITION", ">CURRENT", ">NEW", ">CHANGE")
		for _, m := range moves {
			current, change := "-", "-"
			if m.Current != nil {
				current, change = fmt.Sprint(*m.Current), fmt.Sprintf("%+d", m.New-*m.Current)
			}
			table.Row(m.Topic, m.Partition, current, m.New, change)
		}
		_, err := table.WriteTo(w)
		if !o.Execute {
			g.Note("Nothing was changed; add --execute to apply this.")
		}
		return err
	})
}

func (o ResetOptions) validate() error {
	targets := 0
	for _, set := range []bool{o.ToStart, o.ToEnd, o.ToCurrent, o.ToOffset != nil, o.ToTime != "", o.ByDuration != "", o.ShiftBy != nil, o.FromFile != ""} {
		if set {
			targets++
		}
	}
	if targets != 1 {
		return cli.Usagef("give exactly one of --to-start, --to-end, --to-current, --to-offset, --to-time, --by-duration, --shift-by and --from-file")
	}
	switch {
	case o.FromFile != "" && (len(o.Topics) > 0 || o.AllTopics):
		return cli.Usagef("--from-file names the topics itself; leave --topic and --all-topics out")
	case o.FromFile == "" && (len(o.Topics) > 0) == o.AllTopics:
		return cli.Usagef("give either --topic TOPIC[:PARTITIONS] or --all-topics")
	case o.ToOffset != nil && *o.ToOffset < 0:
		return cli.Usagef("--to-offset is %d: it must be 0 or more", *o.ToOffset)
	}
	return nil
}

// plan works out the new offset of each partition.
func (o ResetOptions) plan(ctx context.Context, conn *cli.Conn, at *offsets, wanted map[string]choice) ([]Move, error) {
	if o.AllTopics {
		for t := range at.current {
			wanted[t] = choice{}
		}
		if len(wanted) == 0 {
			return nil, cli.Hintf(fmt.Errorf("group %s has no offsets yet", at.group), "Name topics with --topic.")
		}
	}
	names := make([]string, 0, len(wanted))
	for t := range wanted {
		names = append(names, t)
	}
	if _, err := conn.Topics(ctx, names...); err != nil {
		return nil, err
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, names...)
	if err != nil {
		return nil, err
	}
	if err := narrow(spans, wanted); err != nil {
		return nil, err
	}
	target, err := o.targets(ctx, conn, spans, wanted, at)
	if err != nil {
		return nil, err
	}
	moves := []Move{}
	for topic, partitions := range target {
		for partition, to := range partitions {
			m := Move{Group: at.group, Topic: topic, Partition: partition, New: to}
			if c, ok := at.current.Lookup(topic, partition); ok {
				m.Current = &c.At
			}
			moves = append(moves, m)
		}
	}
	if len(moves) == 0 {
		return nil, cli.Hintf(fmt.Errorf("group %s has no offset there, so there is nothing to move from", at.group),
			"Use --to-start, --to-end, --to-offset or --to-time.")
	}
	sort.Slice(moves, func(i, j int) bool {
		a, b := moves[i], moves[j]
		if a.Topic != b.Topic {
			return a.Topic < b.Topic
		}
		return a.Partition < b.Partition
	})
	return moves, nil
}

// choice is what is wanted of one topic: some partitions (none: all), and with
// --from-file the offset of each.
type choice struct {
	partitions []int32
	offsets    map[int32]int64
}

// named is what the command line or the file names.
func (o ResetOptions) named() (map[string]choice, error) {
	if o.FromFile != "" {
		return readFile(o.FromFile)
	}
	wanted := map[string]choice{}
	for _, text := range o.Topics {
		topic, partitions, err := ParseTopic(text)
		if err != nil {
			return nil, cli.Usagef("--topic: %v", err)
		}
		wanted[topic] = choice{partitions: partitions}
	}
	return wanted, nil
}

// ParseTopic reads "orders" or "orders:0,2-4".
func ParseTopic(s string) (topic string, partitions []int32, err error) {
	topic, list, some := strings.Cut(s, ":")
	if topic == "" || some && list == "" {
		return "", nil, fmt.Errorf("%q is not a topic, or a topic with partitions such as orders:0,2-4", s)
	}
	if !some {
		return topic, nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		a, errA := strconv.ParseUint(first, 10, 31)
		b := a
		var errB error
		if ranged {
			b, errB = strconv.ParseUint(last, 10, 31)
		}
		if errA != nil || errB != nil || b < a || b-a > 100_000 {
			return "", nil, fmt.Errorf("%q in %q is not a partition or a range of them, such as 3 or 0-5", part, s)
		}
		for ; a <= b; a++ {
			partitions = append(partitions, int32(a))
		}
	}
	return topic, partitions, nil
}

// narrow keeps only what is wanted in spans, and refuses what is not there.
func narrow(spans cli.Spans, wanted map[string]choice) error {
	for topic, w := range wanted {
		if len(w.partitions) == 0 {
			continue
		}
		for _, p := range w.partitions {
			if _, ok := spans[topic][p]; !ok {
				return cli.Usagef("topic %s has no partition %d; its partitions are 0 to %d", topic, p, len(spans[topic])-1)
			}
		}
		for p := range spans[topic] {
			if !slices.Contains(w.partitions, p) {
				delete(spans[topic], p)
			}
		}
	}
	return nil
}

func (o ResetOptions) targets(ctx context.Context, conn *cli.Conn, spans cli.Spans, wanted map[string]choice, at *offsets) (map[string]map[int32]int64, error) {
	now := time.Now()
	switch {
	case o.ToStart:
		return cli.Start.Resolve(ctx, conn.Admin, spans)
	case o.ToEnd:
		return cli.End.Resolve(ctx, conn.Admin, spans)
	case o.ToOffset != nil:
		return cli.Offset(*o.ToOffset).Resolve(ctx, conn.Admin, spans)
	case o.ToTime != "":
		t, ok := cli.ParseTime(o.ToTime)
		if !ok {
			return nil, cli.Usagef("--to-time %q is not a time; write 2026-01-31T08:00:00Z or @1769846400", o.ToTime)
		}
		return cli.At(t).Resolve(ctx, conn.Admin, spans)
	case o.ByDuration != "":
		d, err := cli.ParseDuration(o.ByDuration)
		if err != nil || d < 0 {
			return nil, cli.Usagef("--by-duration %q is not a time span; write 90m, 12h or 7d", o.ByDuration)
		}
		return cli.At(now.Add(-d)).Resolve(ctx, conn.Admin, spans)
	}
	out := map[string]map[int32]int64{}
	for topic, partitions := range spans {
		out[topic] = map[int32]int64{}
		for p, span := range partitions {
			to, ok := wanted[topic].offsets[p]
			if o.FromFile == "" {
				c, committed := at.current.Lookup(topic, p)
				if !committed {
					if len(wanted[topic].partitions) == 0 {
						continue // it was not asked for by its number
					}
					return nil, cli.Hintf(fmt.Errorf("group %s has no offset for %s-%d, so there is nothing to move from", at.group, topic, p),
						"Use --to-start, --to-end, --to-offset or --to-time for it.")
				}
				to, ok = c.At, true
				if o.ShiftBy != nil {
					to += *o.ShiftBy
				}
			}
			if ok {
				out[topic][p] = min(max(to, span.Start), span.End)
			}
		}
	}
	return out, nil
}

func readFile(name string) (map[string]choice, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, cli.Usagef("--from-file: %v", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = 3
	r.Comment = '#'
	r.TrimLeadingSpace = true
	lines, err := r.ReadAll()
	if err != nil {
		return nil, cli.Usagef("--from-file %s: %v; each line is topic,partition,offset", name, err)
	}
	wanted := map[string]choice{}
	for i, line := range lines {
		partition, err1 := strconv.ParseUint(strings.TrimSpace(line[1]), 10, 31)
		offset, err2 := strconv.ParseUint(strings.TrimSpace(line[2]), 10, 63)
		if line[0] == "" || err1 != nil || err2 != nil {
			return nil, cli.Usagef("--from-file %s, entry %d: %q is not topic,partition,offset", name, i+1, strings.Join(line, ","))
		}
		c := wanted[line[0]]
		if c.offsets == nil {
			c.offsets = map[int32]int64{}
		}
		if _, twice := c.offsets[int32(partition)]; twice {
			return nil, cli.Usagef("--from-file %s, entry %d: %s-%d is there twice", name, i+1, line[0], partition)
		}
		c.partitions = append(c.partitions, int32(partition))
		c.offsets[int32(partition)] = int64(offset)
		wanted[line[0]] = c
	}
	if len(wanted) == 0 {
		return nil, cli.Usagef("--from-file %s holds no line topic,partition,offset", name)
	}
	return wanted, nil
}

func export(w io.Writer, moves []Move) error {
	out := csv.NewWriter(w)
	for _, m := range moves {
		if err := out.Write([]string{m.Topic, strconv.Itoa(int(m.Partition)), strconv.FormatInt(m.New, 10)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
