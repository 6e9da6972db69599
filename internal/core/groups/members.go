package groups

import (
	"crypto/rand"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Join handles a JoinGroup; its ticket, limits and fresh id are made here.
func (c *Coordinator) Join(id string, j classic.Join, reply func(classic.JoinReply)) {
	refuse := func(why refusal.Reason) {
		reply(classic.JoinReply{Reason: why, MemberID: j.MemberID, Generation: -1})
	}
	if why := c.open(id); why != refusal.None {
		refuse(why)
		return
	}
	j.Limits = c.classicLimits()
	j.FreshID = freshID(j.ClientID, j.InstanceID)
	found := c.with(id, j.MemberID == "", func(g *group, now time.Time) answers {
		j.Ticket = g.ticketLocked()
		if g.joins == nil {
			g.joins = map[classic.Ticket]func(classic.JoinReply){}
		}
		if g.consumer != nil && !g.emptyToClassicLocked(now) {
			return g.joinConsumerLocked(now, j, reply)
		}
		g.joins[j.Ticket] = reply
		return g.effectsLocked(g.classic.Join(now, j))
	})
	if !found {
		refuse(refusal.UnknownMember)
	}
}

// freshID makes a member id as Kafka does: recognisable, and not to be guessed.
func freshID(client, instance string) string {
	if instance != "" {
		client = instance
	}
	return client + "-" + rand.Text()
}

// Sync handles a SyncGroup; its ticket is made here.
func (c *Coordinator) Sync(id string, s classic.Sync, reply func(classic.SyncReply)) {
	if why := c.open(id); why != refusal.None {
		reply(classic.SyncReply{Reason: why})
		return
	}
	found := c.with(id, false, func(g *group, now time.Time) answers {
		if g.consumer != nil {
			r := g.consumer.Sync(now, s, c.view())
			return answers{func() { reply(r) }}
		}
		s.Ticket = g.ticketLocked()
		if g.syncs == nil {
			g.syncs = map[classic.Ticket]func(classic.SyncReply){}
		}
		g.syncs[s.Ticket] = reply
		return g.effectsLocked(g.classic.Sync(now, s))
	})
	if !found {
		reply(classic.SyncReply{Reason: refusal.UnknownMember})
	}
}

// Heartbeat handles a Heartbeat.
func (c *Coordinator) Heartbeat(id, member, instance string, generation int32) refusal.Reason {
	why := c.open(id)
	if why != refusal.None {
		return why
	}
	found := c.with(id, false, func(g *group, now time.Time) answers {
		if g.consumer != nil {
			why = g.consumer.ClassicHeartbeat(now, member, instance, generation)
			return nil
		}
		why = g.classic.Heartbeat(now, member, instance, generation)
		return nil
	})
	if !found {
		return refusal.UnknownMember
	}
	return why
}

// Leave handles a LeaveGroup: of each leaver whether it was a member, and one
// reason for all if the group cannot be asked.
func (c *Coordinator) Leave(id string, leavers []classic.Leaver) ([]refusal.Reason, refusal.Reason) {
	if why := c.open(id); why != refusal.None {
		return nil, why
	}
	var each []refusal.Reason
	found := c.with(id, false, func(g *group, now time.Time) answers {
		if g.consumer != nil {
			ts := c.view()
			var fx consumer.Effects
			each, fx = g.consumer.Leave(leavers, ts)
			return g.changesLocked(now, fx, ts, func(err error) { c.noteUnstored(g.id, err) })
		}
		var fx classic.Effects
		each, fx = g.classic.Leave(now, leavers)
		return g.effectsLocked(fx)
	})
	if !found {
		each = make([]refusal.Reason, len(leavers))
		for i := range each {
			each[i] = refusal.UnknownMember
		}
	}
	return each, refusal.None
}

// open says whether requests for a group can be taken at all.
func (c *Coordinator) open(id string) refusal.Reason {
	switch {
	case id == "":
		return refusal.InvalidGroupID
	case c.stopped.Load(), c.shardOf(id).unread != nil:
		return refusal.CoordinatorNotAvailable
	}
	return refusal.None
}
