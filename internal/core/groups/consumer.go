package groups

import (
	"log/slog"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// consumerLimits are the settings of a group of the consumer protocol, as they are now.
func (c *Coordinator) consumerLimits(group string) consumer.Limits {
	return consumer.Limits{
		Session:  time.Duration(c.topics.GroupSettingInt(group, "consumer.session.timeout.ms")) * time.Millisecond,
		Interval: time.Duration(c.topics.GroupSettingInt(group, "consumer.heartbeat.interval.ms")) * time.Millisecond,
		MaxSize:  int(c.topics.SettingInt("group.consumer.max.size")),
	}
}

// view gives the topics as they are now.
func (c *Coordinator) view() *consumer.Topics {
	version := c.topics.Version()
	if ts := c.seen.Load(); ts != nil && ts.Version == version {
		return ts
	}
	all := c.topics.All() // of this version or a later one, which is looked at again then
	out := make([]consumer.Topic, 0, len(all))
	for _, t := range all {
		out = append(out, consumer.Topic{Name: t.Name, ID: t.ID, Partitions: int32(len(t.Partitions))})
	}
	ts := consumer.NewTopics(version, out)
	c.seen.Store(ts)
	return ts
}

// ConsumerHeartbeat handles a heartbeat of the consumer protocol (KIP-848); the
// limits are set here. A classic group of consumers becomes one of the new
// protocol when the first such member joins.
func (c *Coordinator) ConsumerHeartbeat(id string, in consumer.Heartbeat, reply func(consumer.Reply)) {
	refuse := func(why refusal.Reason) { reply(consumer.Reply{Reason: why, Detail: why.Error()}) }
	if why := c.open(id); why != refusal.None {
		refuse(why)
		return
	}
	in.Limits = c.consumerLimits(id)
	ts := c.view()
	found := c.with(id, in.Epoch == 0, func(g *group, now time.Time) answers {
		if g.consumer == nil && in.Epoch == 0 {
			return g.upgradeLocked(now, in, ts, reply)
		}
		if g.consumer == nil {
			return answers{func() { refuse(refusal.GroupNotFound) }}
		}
		r, fx := g.consumer.Heartbeat(now, in, ts)
		return g.changesLocked(now, fx, ts, func(err error) { reply(stored(r, err)) })
	})
	if !found {
		refuse(refusal.GroupNotFound)
	}
}

// stored is the reply when the changes behind it are durable, or are not to be.
func stored(r consumer.Reply, err error) consumer.Reply {
	if why := errReason(err); why != refusal.None {
		return consumer.Reply{Reason: why, Detail: why.Error(), MemberID: r.MemberID}
	}
	return r
}

func (g *group) records(cs []consumer.Change) []statelog.Record {
	rs := make([]statelog.Record, 0, len(cs))
	for _, ch := range cs {
		rs = append(rs, codec.Consumer(g.id, ch))
	}
	return rs
}

// changesLocked stores what a command has changed and calls done when it is
// durable, at once if nothing changed. Changes that are refused are taken back.
func (g *group) changesLocked(now time.Time, fx consumer.Effects, ts *consumer.Topics, done func(error)) answers {
	if fx.Downgrade {
		return g.downgradeLocked(now, fx, ts, done)
	}
	if len(fx.Changes) == 0 {
		return answers{func() { done(nil) }}
	}
	if err := g.shard.log.Append(g.records(fx.Changes), done); err != nil {
		g.consumer.Undo(fx)
		return answers{func() { done(err) }}
	}
	g.shard.c.reportEvents(g.id, fx.Started, fx.Gone)
	return nil
}

// upgradeLocked makes the group one of the consumer protocol by the join of its
// first member that speaks it. Members of the classic protocol rejoin; what waits
// is told so.
func (g *group) upgradeLocked(now time.Time, in consumer.Heartbeat, ts *consumer.Topics, reply func(consumer.Reply)) answers {
	next := consumer.New(g.id)
	var moved consumer.Effects
	if g.classic.Size() > 0 {
		var ok bool
		if next, moved, ok = consumer.FromClassic(now, g.classic, ts); !ok {
			return answers{func() {
				reply(consumer.Reply{Reason: refusal.GroupNotFound, Detail: "the group's members do not speak the consumers' protocol; use another group id"})
			}}
		}
	}
	r, fx := next.Heartbeat(now, in, ts)
	if r.Reason != refusal.None {
		return answers{func() { reply(r) }}
	}
	rs := append(g.endLocked(), g.records(moved.Changes)...)
	rs = append(rs, g.records(fx.Changes)...)
	if err := g.shard.log.Append(rs, func(err error) { reply(stored(r, err)) }); err != nil {
		return answers{func() { reply(stored(r, err)) }}
	}
	as := g.effectsLocked(g.classic.Kill(now, refusal.RebalanceInProgress))
	g.classic, g.consumer, g.image = nil, next, nil
	g.shard.c.reportEvents(g.id, fx.Started, fx.Gone)
	return as
}

// downgradeLocked makes the group a classic one: its last member of the consumer
// protocol is gone.
func (g *group) downgradeLocked(now time.Time, fx consumer.Effects, ts *consumer.Topics, done func(error)) answers {
	next, cfx := g.consumer.ToClassic(now, ts)
	rs := append(g.records(fx.Changes), g.endLocked()...)
	rs = append(rs, codec.Group(g.id, *cfx.Save))
	if err := g.shard.log.Append(rs, done); err != nil {
		g.consumer.Undo(fx)
		return answers{func() { done(err) }}
	}
	g.shard.c.reportEvents(g.id, fx.Started, fx.Gone)
	g.classic, g.consumer, g.image = next, nil, cfx.Save
	cfx.Save = nil // it is stored with the above; nobody waits for it
	return g.effectsLocked(cfx)
}

// emptyToClassicLocked makes an empty group a classic one, for a member that
// speaks that protocol; false when the group is not empty or cannot be changed.
func (g *group) emptyToClassicLocked(now time.Time) bool {
	if g.consumer.Size() > 0 {
		return false
	}
	note := func(err error) { g.shard.c.noteUnstored(g.id, err) }
	if err := g.shard.log.Append(g.endLocked(), note); err != nil {
		note(err)
		return false
	}
	g.classic, g.consumer = classic.New(g.id, now), nil
	return true
}

// joinConsumerLocked handles the join of a member of the classic protocol in a
// group of the consumer protocol.
func (g *group) joinConsumerLocked(now time.Time, j classic.Join, reply func(classic.JoinReply)) answers {
	c := g.shard.c
	ts := c.view()
	r, fx := g.consumer.Join(now, j, c.consumerLimits(g.id).MaxSize, ts)
	return g.changesLocked(now, fx, ts, func(err error) {
		if why := errReason(err); why != refusal.None {
			r = classic.JoinReply{Reason: why, MemberID: j.MemberID, Generation: -1}
		}
		reply(r)
	})
}

// noteUnstored logs changes that nobody waits for and that were not stored.
func (c *Coordinator) noteUnstored(id string, err error) {
	if err != nil {
		c.opts.Log.Warn("group change not stored", slog.String("group", id), slog.Any("err", err))
	}
}

// DescribeConsumer shows one group of the consumer protocol, with the topics by
// which its partitions can be named; GroupNotFound when there is none.
func (c *Coordinator) DescribeConsumer(id string) (d consumer.Description, ts *consumer.Topics, why refusal.Reason) {
	if c.open(id) == refusal.CoordinatorNotAvailable {
		return d, nil, refusal.CoordinatorNotAvailable
	}
	why = refusal.GroupNotFound
	c.with(id, false, func(g *group, _ time.Time) answers {
		if g.consumer != nil {
			d, why = g.consumer.Describe(), refusal.None
		}
		return nil
	})
	return d, c.view(), why
}
