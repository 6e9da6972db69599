package topic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// The sample of records that tells how many keys an addition moves.
const (
	sampleRecords = 20_000
	sampleTime    = 5 * time.Second
)

// Growth is what adding partitions does to a topic's keys. Kafka's default
// partitioner puts a key into murmur2(key) mod partitions, so most keys move
// when the count changes.
type Growth struct {
	Topic          string `json:"topic"`
	From           int    `json:"partitions_before"`
	To             int    `json:"partitions_after"`
	SampledRecords int    `json:"sampled_records"`
	SampledKeys    int    `json:"sampled_keys"`
	MovingKeys     int    `json:"moving_keys"`
	DryRun         bool   `json:"dry_run"`
}

// AddPartitions raises a topic to a number of partitions, after saying what
// that does to the order of keyed records. It refuses a keyed topic unless yes.
func AddPartitions(ctx context.Context, g *cli.Globals, topic string, to, add int, dryRun, yes bool) error {
	if (to > 0) == (add > 0) || to < 0 || add < 0 {
		return cli.Usagef("give one of --to N (the new total) and --add N (how many more)")
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	growth, err := planGrowth(ctx, g, conn, topic, to, add)
	if err != nil {
		return err
	}
	growth.DryRun = dryRun
	if growth.SampledKeys > 0 {
		g.Note("%s", growth.warning())
	}
	if !dryRun {
		if growth.SampledKeys > 0 {
			if err := g.Confirm(ctx, yes, fmt.Sprintf("Topic %s is keyed: order per key breaks across this change.", topic)); err != nil {
				return err
			}
		}
		limited, cancel := g.Limit(ctx)
		defer cancel()
		answers, err := conn.Admin.UpdatePartitions(limited, growth.To, topic)
		if err != nil {
			return cli.Failed("add partitions to "+topic, err)
		}
		if a := answers[topic]; a.Err != nil {
			return cli.Refused("add partitions to "+topic, a.Err, a.ErrMessage)
		}
	}
	return g.Print(growth, func(w io.Writer) error {
		verb := "has"
		if dryRun {
			verb = "would have"
		}
		_, err := fmt.Fprintf(w, "Topic %s %s %d partitions (before: %d).\n", topic, verb, growth.To, growth.From)
		return err
	})
}

func planGrowth(ctx context.Context, g *cli.Globals, conn *cli.Conn, topic string, to, add int) (Growth, error) {
	limited, cancel := g.Limit(ctx)
	defer cancel()
	details, err := conn.Topics(limited, topic)
	if err != nil {
		return Growth{}, err
	}
	growth := Growth{Topic: topic, From: len(details[topic].Partitions), To: to}
	if add > 0 {
		growth.To = growth.From + add
	}
	if growth.To <= growth.From {
		return growth, cli.Usagef("topic %s has %d partitions; --to must be more, since partitions cannot be taken away", topic, growth.From)
	}
	spans, err := cli.ListSpans(limited, conn.Admin, topic)
	if err != nil {
		return growth, err
	}
	keys, records, err := sampleKeys(ctx, g, topic, spans[topic])
	if err != nil {
		return growth, err
	}
	growth.SampledRecords, growth.SampledKeys = records, len(keys)
	partition := kgo.StickyKeyPartitioner(nil).ForTopic(topic).Partition
	for key := range keys {
		r := &kgo.Record{Key: []byte(key)}
		if partition(r, growth.From) != partition(r, growth.To) {
			growth.MovingKeys++
		}
	}
	return growth, nil
}

func (r Growth) warning() string {
	return fmt.Sprintf("Of %s in the last %s, %s (%.0f %%) will go to another partition from now on.\n"+
		"Records of one key from before and after the change then lie in different partitions, and a\n"+
		"consumer may see them out of order. Drain the topic first where that matters.",
		cli.Plural(int64(r.SampledKeys), "distinct key"), cli.Plural(int64(r.SampledRecords), "record"),
		cli.Count(int64(r.MovingKeys)), 100*float64(r.MovingKeys)/float64(r.SampledKeys))
}

// sampleKeys reads the newest records of every partition and gives their
// distinct keys, and how many records it read.
func sampleKeys(ctx context.Context, g *cli.Globals, topic string, spans map[int32]cli.Span) (map[string]struct{}, int, error) {
	keys := map[string]struct{}{}
	share := int64(max(1, sampleRecords/max(1, len(spans))))
	starts := map[int32]kgo.Offset{}
	left := map[int32]int64{} // partition → its end, while not reached
	for p, s := range spans {
		if s.Records() > 0 {
			starts[p] = kgo.NewOffset().At(max(s.Start, s.End-share))
			left[p] = s.End
		}
	}
	if len(starts) == 0 {
		return keys, 0, nil
	}
	conn, err := g.Connect(ctx, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}), kgo.FetchMaxWait(250*time.Millisecond))
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	records := 0
	for len(left) > 0 {
		fetches := conn.PollFetches(ctx)
		if ctx.Err() != nil {
			break // what was read so far is the sample
		}
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, 0, cli.Failed("read "+topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records++
			if r.Key != nil {
				keys[string(r.Key)] = struct{}{}
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return keys, records, nil
}
