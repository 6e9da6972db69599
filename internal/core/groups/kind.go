package groups

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// What a group is asked whatever its protocol.

func (g *group) listedLocked() Listed {
	if g.consumer != nil {
		return Listed{ID: g.id, ProtocolType: TypeConsumer, State: string(g.consumer.State()), Type: TypeConsumer}
	}
	return Listed{ID: g.id, ProtocolType: g.classic.ProtocolType(), State: g.classic.State().String(), Type: TypeClassic}
}

func (g *group) describeLocked() any {
	if g.consumer != nil {
		return g.consumer.Describe()
	}
	return g.classic.Describe()
}

func (g *group) sizeLocked() int {
	if g.consumer != nil {
		return g.consumer.Size()
	}
	return g.classic.Size()
}

// emptyLocked says that the group may be deleted on request.
func (g *group) emptyLocked() bool {
	if g.consumer != nil {
		return g.consumer.Size() == 0
	}
	return g.classic.State() == classic.Empty
}

// deletableLocked says that the group may be deleted unasked.
func (g *group) deletableLocked() bool {
	if g.consumer != nil {
		return g.consumer.Size() == 0
	}
	return g.classic.Deletable()
}

func (g *group) idleLocked() bool {
	if g.consumer != nil {
		return g.consumer.Idle()
	}
	return g.classic.Idle()
}

func (g *group) wakeLocked() time.Time {
	if g.consumer != nil {
		return g.consumer.Wake()
	}
	return g.classic.Wake()
}

func (g *group) tickLocked(now time.Time) answers {
	if g.consumer == nil {
		return g.effectsLocked(g.classic.Tick(now))
	}
	c := g.shard.c
	ts := c.view()
	return g.changesLocked(now, g.consumer.Tick(now, ts), ts, func(err error) { c.noteUnstored(g.id, err) })
}

func (g *group) subscribedLocked(topic string) bool {
	if g.consumer != nil {
		return g.consumer.SubscribedTo(topic, g.shard.c.view())
	}
	return g.classic.SubscribedTo(topic)
}

func (g *group) checkCommitLocked(now time.Time, cm *Commit) refusal.Reason {
	if g.consumer != nil {
		if cm.Txn != nil && cm.Generation < 0 && cm.MemberID == "" && cm.InstanceID == "" {
			return refusal.None // of before KIP-447
		}
		return g.consumer.CheckCommit(cm.MemberID, cm.InstanceID, cm.Generation)
	}
	return g.classic.CheckCommit(now, cm.MemberID, cm.InstanceID, cm.Generation, cm.Txn != nil)
}

// endLocked gives the tombstones of all that is stored of the group but offsets.
func (g *group) endLocked() []statelog.Record {
	if g.consumer == nil {
		return []statelog.Record{codec.NoGroup(g.id)}
	}
	return g.records(g.consumer.End())
}
