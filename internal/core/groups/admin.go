package groups

import (
	"log/slog"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/core/topics"
)

// Type names of groups, as ListGroups has them (KIP-848).
const (
	TypeClassic  = "classic"
	TypeConsumer = "consumer"
)

// Listed is one group of a list.
type Listed struct {
	ID, ProtocolType, State, Type string
}

// List gives every group, in no particular order.
func (c *Coordinator) List() []Listed {
	var out []Listed
	for _, g := range c.all() {
		g.do(c.opts.Now(), func(g *group, _ time.Time) answers {
			out = append(out, g.listedLocked())
			return nil
		})
	}
	return out
}

// Exists reports whether there is such a group, or offsets of one.
func (c *Coordinator) Exists(id string) bool {
	return c.with(id, false, func(*group, time.Time) answers { return nil })
}

// Describe shows one group of the classic protocol, or says why not: GroupNotFound
// when there is none.
func (c *Coordinator) Describe(id string) (d classic.Description, why refusal.Reason) {
	if c.open(id) == refusal.CoordinatorNotAvailable {
		return d, refusal.CoordinatorNotAvailable
	}
	why = refusal.GroupNotFound
	c.with(id, false, func(g *group, _ time.Time) answers {
		if g.classic != nil {
			d, why = g.classic.Describe(), refusal.None
		}
		return nil
	})
	return d, why
}

// Delete removes a group without members, with its offsets, and calls done when
// that is durable.
func (c *Coordinator) Delete(id string, done func(refusal.Reason)) {
	if why := c.open(id); why != refusal.None {
		done(why)
		return
	}
	found := c.with(id, false, func(g *group, now time.Time) answers {
		if !g.emptyLocked() {
			return answers{func() { done(refusal.NonEmptyGroup) }}
		}
		if err := g.deleteLocked(now, func(err error) { done(errReason(err)) }); err != nil {
			return answers{func() { done(storeReason(err)) }}
		}
		return nil
	})
	if !found {
		done(refusal.GroupNotFound)
	}
}

// deleteLocked appends the tombstones of an empty group and forgets it: what comes
// next for its id is a new group, whose records come after the tombstones.
func (g *group) deleteLocked(now time.Time, done func(error)) error {
	rs := append(g.tombstones(g.offsets.Keys("")), g.endLocked()...)
	if err := g.shard.log.Append(rs, done); err != nil {
		return err
	}
	if g.classic != nil {
		g.classic.Kill(now, refusal.CoordinatorNotAvailable) // nobody waits in an empty group
	}
	g.forgetLocked()
	return nil
}

func (g *group) tombstones(keys []offsets.Key) []statelog.Record {
	rs := make([]statelog.Record, 0, len(keys)+1)
	for _, k := range keys {
		rs = append(rs, codec.NoOffset(g.id, k))
	}
	return rs
}

// dropLocked appends tombstones for offsets and removes them when durable.
func (g *group) dropLocked(keys []offsets.Key, done func(error)) error {
	var order uint64
	err := g.shard.log.Append(g.tombstones(keys), func(err error) {
		g.do(g.shard.c.opts.Now(), func(g *group, _ time.Time) answers {
			g.offsets.Removed(order, keys, err == nil)
			return nil
		})
		done(err)
	})
	if err == nil {
		order = g.offsets.Removing(keys) // the callback waits for the lock
	}
	return err
}

func errReason(err error) refusal.Reason {
	if err == nil {
		return refusal.None
	}
	return storeReason(err)
}

// DeleteOffsets removes committed offsets of topics that no member consumes, and
// calls done when that is durable: a reason for the group, or one for each key.
func (c *Coordinator) DeleteOffsets(id string, keys []offsets.Key, done func(CommitResult)) {
	if why := c.open(id); why != refusal.None {
		done(CommitResult{All: why})
		return
	}
	found := c.with(id, false, func(g *group, _ time.Time) answers {
		if !g.emptyLocked() && g.listedLocked().ProtocolType != TypeConsumer {
			return answers{func() { done(CommitResult{All: refusal.NonEmptyGroup}) }}
		}
		res := CommitResult{Each: make([]refusal.Reason, len(keys))}
		var drop []offsets.Key
		for i, k := range keys {
			_, exists := g.offsets.Get(k)
			if _, why := c.topic(k.Topic, [16]byte{}, k.Partition); why != refusal.None && !exists {
				res.Each[i] = why
			} else if g.subscribedLocked(k.Topic) {
				res.Each[i] = refusal.SubscribedToTopic
			} else if exists {
				drop = append(drop, k)
			}
		}
		if len(drop) == 0 {
			return answers{func() { done(res) }}
		}
		finish := func(err error) {
			if err != nil {
				res = CommitResult{All: storeReason(err)}
			}
			done(res)
		}
		if err := g.dropLocked(drop, finish); err != nil {
			return answers{func() { finish(err) }}
		}
		return nil
	})
	if !found {
		done(CommitResult{All: refusal.GroupNotFound})
	}
}

// topicChanged follows the catalogue.
func (c *Coordinator) topicChanged(ch topics.Change) {
	if ch.Deleted != nil {
		c.topicDeleted(ch.Deleted.Name)
	}
	if ch.Grown != nil {
		c.partitionsAdded(ch.Grown, int32(ch.Partitions))
	}
}

// topicDeleted removes every group's offsets of a topic that is no more.
func (c *Coordinator) topicDeleted(name string) {
	for _, g := range c.all() {
		g.do(c.opts.Now(), func(g *group, _ time.Time) answers {
			c.dropTopicLocked(g, name)
			return nil
		})
	}
}

func (c *Coordinator) dropTopicLocked(g *group, name string) {
	keys := g.offsets.Keys(name)
	if len(keys) == 0 {
		return
	}
	note := func(err error) {
		if err != nil {
			c.opts.Log.Warn("offsets of a deleted topic stay until the next start",
				slog.String("group", g.id), slog.String("topic", name), slog.Any("err", err))
		}
	}
	if err := g.dropLocked(keys, note); err != nil {
		note(err)
	}
}

// partitionsAdded commits offset 0 for the new partitions, from index first on, in
// every group that has offsets of the topic: records that come before a consumer
// has found the partition are then not passed over, whatever it does without a
// committed offset.
// It returns when that is durable, so that who asked for partitions can rely on it.
func (c *Coordinator) partitionsAdded(t *topics.Topic, first int32) {
	at := c.opts.Now().UnixMilli()
	var storing sync.WaitGroup
	defer storing.Wait()
	for _, g := range c.all() {
		g.do(c.opts.Now(), func(g *group, _ time.Time) answers {
			keys := g.offsets.Keys(t.Name)
			if len(keys) == 0 {
				return nil
			}
			has := map[int32]bool{}
			for _, k := range keys {
				has[k.Partition] = true
			}
			var cs []offsets.Commit
			var rs []statelog.Record
			for p := first; int(p) < len(t.Partitions); p++ {
				if has[p] {
					continue
				}
				cm := offsets.Commit{
					Key:    offsets.Key{Topic: t.Name, Partition: p},
					Offset: offsets.Offset{LeaderEpoch: -1, At: at, ExpireAt: -1, TopicID: t.ID},
				}
				cs, rs = append(cs, cm), append(rs, codec.Offset(g.id, cm))
			}
			if len(cs) == 0 {
				return nil
			}
			note := func(err error) {
				if err != nil {
					c.opts.Log.Warn("no first offset for new partitions",
						slog.String("group", g.id), slog.String("topic", t.Name), slog.Any("err", err))
				}
				storing.Done()
			}
			storing.Add(1)
			if err := g.commitLocked(cs, rs, note); err != nil {
				note(err)
			}
			return nil
		})
	}
}
