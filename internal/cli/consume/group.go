package consume

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// commitEvery is how often a member commits what it has printed.
const commitEvery = time.Second

// leaveGrace bounds the last commit and the leaving of the group.
const leaveGrace = 5 * time.Second

// member is the state of reading as a member of a group. Records are printed,
// flushed, then marked; only what is marked is committed.
type member struct {
	*plan
	g    *cli.Globals
	conn *cli.Conn
	link *cli.Link
	out  *output

	mu       sync.Mutex
	assigned map[place]bool // partitions that are ours now
	joined   bool           // an assignment has come
}

// group reads as a member of the group until every partition it is given has
// reached the end it had at the start, or for ever with --follow.
func (p *plan) group(ctx context.Context, g *cli.Globals) error {
	ends, err := p.groupEnds(ctx, g)
	if err != nil {
		return err
	}
	m := &member{plan: p, g: g, link: cli.NewLink(g), out: p.output(g), assigned: map[place]bool{}}
	opts := append(p.clientOptions(m.link), m.groupOptions()...)
	if m.conn, err = g.Connect(ctx, opts...); err != nil {
		return err
	}
	err = m.loop(ctx, ends)
	if flushErr := m.out.w.Flush(); err == nil {
		err = flushErr
	}
	// The last commit and the leave are still to be made when we are interrupted.
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer cancel()
	if commitErr := m.conn.CommitMarkedOffsets(leave); err == nil && commitErr != nil {
		err = cli.Failed("commit offsets of group "+p.Group, commitErr)
	}
	m.conn.CloseAllowingRebalance()
	return err
}

func (m *member) groupOptions() []kgo.Opt {
	changed := func(owned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(ctx context.Context, cl *kgo.Client, partitions map[string][]int32) {
			if !owned {
				if err := cl.CommitMarkedOffsets(ctx); err != nil {
					m.g.Note("The offsets of partitions that move to another member were not committed (%v); it will print some records again.", err)
				}
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			m.joined = true
			for t, ps := range partitions {
				for _, p := range ps {
					if owned {
						m.assigned[place{t, p}] = true
					} else {
						delete(m.assigned, place{t, p})
					}
				}
			}
		}
	}
	lost := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for t, ps := range partitions {
			for _, p := range ps {
				delete(m.assigned, place{t, p})
			}
		}
	}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(m.Group),
		kgo.ConsumeTopics(m.Topics...),
		kgo.ConsumeStartOffset(m.from.ClientOffset()),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitEvery),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(changed(true)),
		kgo.OnPartitionsRevoked(changed(false)),
		kgo.OnPartitionsLost(lost),
	}
	if m.Protocol == "consumer" {
		opts = append(opts, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	}
	return opts
}

// groupEnds are the ends to stop at; nil when following.
func (p *plan) groupEnds(ctx context.Context, g *cli.Globals) (map[place]int64, error) {
	conn, err := g.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	if _, err := conn.Topics(ctx, p.Topics...); err != nil {
		return nil, err
	}
	if !p.bounded {
		return nil, nil
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, p.Topics...)
	if err != nil {
		return nil, err
	}
	if p.isolation == kgo.ReadCommitted() {
		if err := spans.Stable(ctx, conn.Admin, p.Topics...); err != nil {
			return nil, err
		}
	}
	ends := map[place]int64{}
	for topic, partitions := range spans {
		for partition, span := range partitions {
			ends[place{topic, partition}] = span.End
		}
	}
	return ends, nil
}

func (m *member) loop(ctx context.Context, ends map[place]int64) error {
	for {
		poll, cancel := context.WithTimeout(ctx, idleCheck)
		fetches := m.conn.PollFetches(poll)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fetchError(fetches); err != nil {
			return err
		}
		if err := m.printAll(fetches); err != nil {
			return err
		}
		m.conn.AllowRebalance()
		if m.out.full() {
			return nil
		}
		if m.bounded && fetches.NumRecords() == 0 {
			if err := giveUp(m.g, m.link); err != nil {
				return err
			}
			done, err := m.atEnds(ctx, ends)
			if done || err != nil {
				return err
			}
		}
	}
}

// printAll prints what a poll brought, and marks it for commit once it is out.
func (m *member) printAll(fetches kgo.Fetches) error {
	last := map[place]*kgo.Record{}
	for it := fetches.RecordIter(); !it.Done() && !m.out.full(); {
		rec := it.Next()
		if err := m.out.write(rec); err != nil {
			return err
		}
		last[place{rec.Topic, rec.Partition}] = rec
	}
	if err := m.out.w.Flush(); err != nil {
		return err
	}
	for _, rec := range last {
		m.conn.MarkCommitRecords(rec)
	}
	return nil
}

// atEnds reports whether every partition that is ours has been read up to the
// end it had at the start. A member without partitions is at their ends.
func (m *member) atEnds(ctx context.Context, ends map[place]int64) (bool, error) {
	m.mu.Lock()
	joined, mine := m.joined, make([]place, 0, len(m.assigned))
	for at := range m.assigned {
		mine = append(mine, at)
	}
	m.mu.Unlock()
	if !joined {
		return false, nil
	}
	ctx, cancel := m.g.Limit(ctx)
	defer cancel()
	if err := m.conn.CommitMarkedOffsets(ctx); err != nil {
		return false, cli.Failed("commit offsets of group "+m.Group, err)
	}
	topics, err := m.conn.Topics(ctx, m.Topics...)
	if err != nil {
		return false, err
	}
	committed, err := m.conn.Admin.FetchOffsets(ctx, m.Group)
	if err != nil {
		return false, cli.Failed("ask for the offsets of group "+m.Group, err)
	}
	for _, at := range mine {
		end, known := ends[at]
		if !known {
			continue // a partition that was added after the start
		}
		position, err := m.position(ctx, at, committed)
		if err != nil {
			return false, err
		}
		if position >= end {
			continue
		}
		_, next, err := m.conn.NextRecord(ctx, topics[at.topic], at.partition, position, m.isolation)
		if err != nil {
			return false, cli.Failed(fmt.Sprintf("read %s-%d", at.topic, at.partition), err)
		}
		if next < end {
			return false, nil
		}
	}
	return true, nil
}

// position is where the group stands in a partition: its commit, else where
// reading begins without one.
func (m *member) position(ctx context.Context, at place, committed kadm.OffsetResponses) (int64, error) {
	if o, ok := committed.Lookup(at.topic, at.partition); ok && o.Err == nil && o.At >= 0 {
		return o.At, nil
	}
	spans, err := cli.ListSpans(ctx, m.conn.Admin, at.topic)
	if err != nil {
		return 0, err
	}
	one := cli.Spans{at.topic: {at.partition: spans[at.topic][at.partition]}}
	start, err := m.from.Resolve(ctx, m.conn.Admin, one)
	if err != nil {
		return 0, err
	}
	return start[at.topic][at.partition], nil
}
