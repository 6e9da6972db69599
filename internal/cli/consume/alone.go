package consume

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// idleCheck is how long a partition may bring nothing before we look whether
// anything is left before its end.
const idleCheck = time.Second

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// alone reads without a group, from and to fixed positions.
func (p *plan) alone(ctx context.Context, g *cli.Globals) error {
	starts, ends, err := p.bounds(ctx, g)
	if err != nil {
		return err
	}
	if len(starts) == 0 {
		return nil
	}
	link := cli.NewLink(g)
	offsets := map[string]map[int32]kgo.Offset{}
	for at, offset := range starts {
		if offsets[at.topic] == nil {
			offsets[at.topic] = map[int32]kgo.Offset{}
		}
		offsets[at.topic][at.partition] = kgo.NewOffset().At(offset)
	}
	conn, err := g.Connect(ctx, append(p.clientOptions(link), kgo.ConsumePartitions(offsets))...)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &reader{plan: p, g: g, conn: conn, link: link, out: p.output(g), next: starts, ends: ends}
	err = r.loop(ctx)
	if flushErr := r.out.w.Flush(); err == nil {
		err = flushErr
	}
	return err
}

// bounds resolves the positions to offsets. A partition in which there is
// nothing to read has no entry.
func (p *plan) bounds(ctx context.Context, g *cli.Globals) (starts, ends map[place]int64, err error) {
	conn, err := g.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	if _, err := conn.Topics(ctx, p.Topics...); err != nil {
		return nil, nil, err
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, p.Topics...)
	if err != nil {
		return nil, nil, err
	}
	if p.bounded && p.isolation == kgo.ReadCommitted() {
		if err := spans.Stable(ctx, conn.Admin, p.Topics...); err != nil {
			return nil, nil, err
		}
	}
	from, err := p.from.Resolve(ctx, conn.Admin, spans)
	if err != nil {
		return nil, nil, err
	}
	to, err := p.to.Resolve(ctx, conn.Admin, spans)
	if err != nil {
		return nil, nil, err
	}
	starts, ends = map[place]int64{}, map[place]int64{}
	for _, part := range p.Partitions {
		if _, ok := spans[p.Topics[0]][part]; !ok {
			return nil, nil, cli.Usagef("--partition %d: topic %s has partitions 0 to %d", part, p.Topics[0], len(spans[p.Topics[0]])-1)
		}
	}
	for topic, partitions := range from {
		for partition, start := range partitions {
			if len(p.Partitions) > 0 && !slices.Contains(p.Partitions, partition) {
				continue
			}
			at := place{topic, partition}
			if p.bounded {
				if start >= to[topic][partition] {
					continue
				}
				ends[at] = to[topic][partition]
			}
			starts[at] = start
		}
	}
	return starts, ends, nil
}

// reader is the state of reading without a group.
type reader struct {
	*plan
	g    *cli.Globals
	conn *cli.Conn
	link *cli.Link
	out  *output
	next map[place]int64 // where each partition's reading stands
	ends map[place]int64 // partitions whose end is still ahead
}

func (r *reader) loop(ctx context.Context) error {
	for !r.bounded || len(r.ends) > 0 {
		poll, cancel := context.WithTimeout(ctx, idleCheck)
		fetches := r.conn.PollFetches(poll)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fetchError(fetches); err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			if err := r.take(it.Next()); err != nil {
				return err
			}
			if r.out.full() {
				return nil
			}
		}
		if err := r.out.w.Flush(); err != nil {
			return err
		}
		if fetches.NumRecords() == 0 && r.bounded {
			if err := giveUp(r.g, r.link); err != nil {
				return err
			}
			if err := r.skipGaps(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// take prints a record that lies before its partition's end, and notes the end
// when it is reached.
func (r *reader) take(rec *kgo.Record) error {
	at := place{rec.Topic, rec.Partition}
	r.next[at] = rec.Offset + 1
	end, open := r.ends[at]
	if r.bounded && (!open || rec.Offset >= end) {
		r.finish(at)
		return nil
	}
	if open && rec.Offset+1 >= end {
		defer r.finish(at)
	}
	return r.out.write(rec)
}

func (r *reader) finish(at place) {
	delete(r.ends, at)
	r.conn.PauseFetchPartitions(map[string][]int32{at.topic: {at.partition}})
}

// skipGaps looks, for partitions that bring nothing, whether only offsets
// without records are left before the end: compacted ones, or those of an
// aborted transaction. The client passes over these in silence.
func (r *reader) skipGaps(ctx context.Context) error {
	if len(r.ends) == 0 {
		return nil
	}
	ctx, cancel := r.g.Limit(ctx)
	defer cancel()
	topics, err := r.conn.Topics(ctx, r.Topics...)
	if err != nil {
		return err
	}
	for at, end := range r.ends {
		_, next, err := r.conn.NextRecord(ctx, topics[at.topic], at.partition, r.next[at], r.isolation)
		if err != nil {
			return cli.Failed(fmt.Sprintf("read %s-%d", at.topic, at.partition), err)
		}
		if next >= end {
			r.finish(at)
		}
	}
	return nil
}
