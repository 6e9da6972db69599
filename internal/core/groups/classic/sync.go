package classic

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Sync is a SyncGroup request.
type Sync struct {
	Ticket               Ticket
	MemberID, InstanceID string
	Generation           int32
	ProtocolType         *string // nil: not said (before version 5)
	Protocol             *string
	Assignments          map[string][]byte // from the leader
}

// Sync handles a SyncGroup. Its reply may come with any later command.
func (g *Group) Sync(now time.Time, s Sync) Effects {
	var fx Effects
	refuse := func(why refusal.Reason) Effects {
		fx.Syncs = append(fx.Syncs, SyncReply{To: s.Ticket, Reason: why})
		return fx
	}
	if g.state == Dead {
		return refuse(refusal.CoordinatorNotAvailable)
	}
	m, why := g.check(s.MemberID, s.InstanceID)
	switch {
	case why != refusal.None:
		return refuse(why)
	case s.Generation != g.generation:
		return refuse(refusal.IllegalGeneration)
	case s.ProtocolType != nil && *s.ProtocolType != g.protocolType,
		s.Protocol != nil && *s.Protocol != g.protocol && g.protocol != "":
		return refuse(refusal.InconsistentProtocol)
	case g.state == Empty:
		return refuse(refusal.UnknownMember)
	case g.state == PreparingRebalance:
		return refuse(refusal.RebalanceInProgress)
	case g.state == Stable:
		g.synced(m)
		g.arm(m, now)
		fx.Syncs = append(fx.Syncs, g.assigned(m, s.Ticket))
		return fx
	}
	if m.sync != 0 && m.sync != s.Ticket {
		fx.failSync(m, refusal.RebalanceInProgress)
	}
	m.sync = s.Ticket
	g.synced(m)
	if m.id == g.leader && (g.assigning == nil || g.assigning.generation != g.generation) {
		as := make(map[string][]byte, len(g.order))
		for _, o := range g.order {
			as[o.id] = s.Assignments[o.id]
		}
		g.save(now, as, &fx)
		g.assigning = &assigning{save: g.saves, generation: g.generation, assignments: as}
	}
	return fx
}

func (g *Group) synced(m *member) {
	delete(g.unsynced, m.id)
	if len(g.unsynced) == 0 {
		g.syncDeadline = time.Time{}
	}
}

func (g *Group) assigned(m *member, to Ticket) SyncReply {
	return SyncReply{To: to, ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
}

// Stored says that the image with this number is durable, or why it is not. It
// never asks for another image; what follows a failure comes with the next Tick.
func (g *Group) Stored(now time.Time, number uint64, ok bool) Effects {
	var fx Effects
	g.storedReplacements(number, ok, now, &fx)
	a := g.assigning
	if a == nil || a.save != number {
		return fx
	}
	g.assigning = nil
	if g.state != CompletingRebalance || a.generation != g.generation {
		return fx // the group has moved on; the members know
	}
	if !ok {
		g.dismissSyncs(now, refusal.CoordinatorNotAvailable, &fx)
		g.restart = true // the next Tick rebalances
		g.wakeBy(now)
		return fx
	}
	g.enter(Stable, now)
	for _, m := range g.order {
		m.assignment = a.assignments[m.id]
		if m.sync != 0 {
			fx.Syncs = append(fx.Syncs, g.assigned(m, m.sync))
			m.sync = 0
			g.arm(m, now)
		}
	}
	fx.Settled = &Rebalance{Generation: g.generation, Members: len(g.members)}
	return fx
}

// storedReplacements answers static members whose takeover is stored. A takeover
// that a rebalance overtook is answered by that.
func (g *Group) storedReplacements(number uint64, ok bool, now time.Time, fx *Effects) {
	rest := g.replacing[:0]
	for _, r := range g.replacing {
		if r.save != number {
			rest = append(rest, r)
			continue
		}
		m := g.members[r.reply.MemberID]
		if m == nil || m.join != r.ticket || g.state != Stable {
			continue
		}
		m.join = 0
		g.arm(m, now)
		if !ok {
			// The instance id stays with the new member: its client joins again.
			r.reply = JoinReply{To: r.ticket, Reason: refusal.CoordinatorNotAvailable, Generation: -1}
		}
		fx.Joins = append(fx.Joins, r.reply)
	}
	g.replacing = rest
}
