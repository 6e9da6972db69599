package classic

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Join is a JoinGroup request.
type Join struct {
	Limits
	Ticket               Ticket
	MemberID, InstanceID string // "": none
	ClientID, ClientHost string
	Session, Rebalance   time.Duration
	ProtocolType         string
	Protocols            []Protocol
	Why                  string // the client's own reason (KIP-800)
	FreshID              string // the id that a new member gets; made by the owner, unique
	RequireKnownID       bool   // version 4 and later (KIP-394)
	CanSkipAssignment    bool   // version 9 and later (KIP-814)
}

// Join handles a JoinGroup. Its reply may come with any later command.
func (g *Group) Join(now time.Time, j Join) Effects {
	var fx Effects
	refuse := func(why refusal.Reason, id string) Effects {
		fx.Joins = append(fx.Joins, JoinReply{To: j.Ticket, Reason: why, MemberID: id, Generation: -1})
		return fx
	}
	if j.Session < j.SessionTimeoutMin || j.Session > j.SessionTimeoutMax {
		return refuse(refusal.InvalidSessionTimeout, j.MemberID)
	}
	if g.state == Dead {
		return refuse(refusal.CoordinatorNotAvailable, j.MemberID)
	}
	g.delay = j.InitialRebalanceDelay
	if !g.hasRoom(j.MemberID, j.MaxSize) {
		if m := g.members[j.MemberID]; m != nil {
			g.remove(now, m, CauseGroupFull, "", &fx)
		}
		delete(g.pending, j.MemberID)
		return refuse(refusal.GroupMaxSizeReached, "")
	}
	if !g.supports(j.ProtocolType, j.Protocols) {
		return refuse(refusal.InconsistentProtocol, j.MemberID)
	}
	if j.MemberID == "" {
		g.joinNew(now, j, &fx)
		return fx
	}
	if _, ok := g.pending[j.MemberID]; ok && j.InstanceID == "" {
		g.admit(now, j, j.MemberID, &fx)
		return fx
	}
	m, why := g.check(j.MemberID, j.InstanceID)
	if why != refusal.None {
		return refuse(why, j.MemberID)
	}
	g.rejoin(now, m, j, &fx)
	return fx
}

// hasRoom applies group.max.size. While members rejoin, those that have are
// counted, so that a limit that was lowered sends the last ones away.
func (g *Group) hasRoom(id string, maxSize int) bool {
	switch g.state {
	case PreparingRebalance:
		if m := g.members[id]; m != nil && m.join != 0 {
			return true
		}
		n := 0
		for _, m := range g.order {
			if m.join != 0 {
				n++
			}
		}
		return n < maxSize
	case CompletingRebalance, Stable:
		return g.members[id] != nil || len(g.members) < maxSize
	default:
		return true
	}
}

// joinNew handles a join without a member id.
func (g *Group) joinNew(now time.Time, j Join, fx *Effects) {
	if j.InstanceID != "" {
		if old := g.statics[j.InstanceID]; old != nil {
			g.replace(now, old, j, fx)
			return
		}
		g.admit(now, j, j.FreshID, fx)
		return
	}
	if j.RequireKnownID {
		until := now.Add(j.Session)
		g.pending[j.FreshID] = until
		g.wakeBy(until)
		fx.Joins = append(fx.Joins, JoinReply{To: j.Ticket, Reason: refusal.MemberIDRequired, MemberID: j.FreshID, Generation: -1})
		return
	}
	g.admit(now, j, j.FreshID, fx)
}

// admit adds a member and rebalances.
func (g *Group) admit(now time.Time, j Join, id string, fx *Effects) {
	m := &member{id: id, instance: j.InstanceID, isNew: true}
	m.take(j)
	// A new member cannot heartbeat while its first join is parked, and a client
	// that is gone cannot be told from one that waits: the wait is bounded.
	m.deadline = now.Add(j.NewMemberTimeout)
	g.wakeBy(m.deadline)
	if len(g.members) == 0 {
		g.protocolType = j.ProtocolType
	}
	if g.state == PreparingRebalance && g.initial {
		g.newMember = true
	}
	g.add(m)
	g.rebalanceOrComplete(now, Rebalance{Cause: CauseJoined, MemberID: id, Why: j.Why}, fx)
}

// take updates m by what its join says, and parks the join.
func (m *member) take(j Join) {
	m.clientID, m.clientHost = j.ClientID, j.ClientHost
	m.session, m.rebalance = j.Session, j.Rebalance
	m.protocols = j.Protocols
	m.join = j.Ticket
}

// rejoin handles the join of somebody who is a member.
func (g *Group) rejoin(now time.Time, m *member, j Join, fx *Effects) {
	same := m.sameProtocols(j.Protocols)
	cause := CauseMetadata
	switch {
	case g.state == Empty:
		fx.Joins = append(fx.Joins, JoinReply{To: j.Ticket, Reason: refusal.UnknownMember, MemberID: j.MemberID, Generation: -1})
		return
	case g.state == PreparingRebalance:
		cause = CauseJoined
	case g.state == Stable && m.id == g.leader:
		// The leader rejoins when what it assigns has changed, e.g. the number of
		// partitions, which no member's metadata shows.
		cause = CauseLeader
	case same:
		// The answer to its join was lost, or it makes sure: tell it again.
		g.arm(m, now)
		m.clientID, m.clientHost = j.ClientID, j.ClientHost
		fx.Joins = append(fx.Joins, g.joined(m, j.Ticket))
		return
	}
	if m.join != 0 && m.join != j.Ticket {
		// A retry on another connection: the older request is answered too.
		fx.Joins = append(fx.Joins, JoinReply{To: m.join, Reason: refusal.RebalanceInProgress, MemberID: m.id, Generation: -1})
	}
	m.take(j)
	g.rebalanceOrComplete(now, Rebalance{Cause: cause, MemberID: m.id, Why: j.Why}, fx)
}

// joined is the answer to a join of the current generation.
func (g *Group) joined(m *member, to Ticket) JoinReply {
	r := JoinReply{
		To: to, MemberID: m.id, Generation: g.generation,
		ProtocolType: g.protocolType, Protocol: g.protocol, Leader: g.leader,
	}
	if m.id == g.leader {
		r.Members = g.roster()
	}
	return r
}

func (g *Group) roster() []JoinMember {
	ms := make([]JoinMember, 0, len(g.order))
	for _, m := range g.order {
		metadata, _ := m.offers(g.protocol)
		ms = append(ms, JoinMember{ID: m.id, Instance: m.instance, Metadata: metadata})
	}
	return ms
}

// replace gives an instance id to a new member id: a static member has restarted
// (KIP-345). The one before it is fenced.
func (g *Group) replace(now time.Time, old *member, j Join, fx *Effects) {
	fx.fence(old, refusal.FencedInstance)
	wasLeader := old.id == g.leader
	before := g.leader
	m := &member{id: j.FreshID, instance: old.instance, assignment: old.assignment}
	metadata, _ := old.offers(g.protocol)
	m.take(j)
	for i, o := range g.order {
		if o == old {
			g.order[i] = m
		}
	}
	delete(g.members, old.id)
	g.members[m.id], g.statics[m.instance] = m, m
	if g.unsynced[old.id] {
		delete(g.unsynced, old.id)
		g.unsynced[m.id] = true
	}
	if wasLeader {
		g.leader = m.id
	}
	g.arm(m, now)

	if g.state != Stable {
		// In CompletingRebalance the leader may assign to the old id: start anew.
		if g.state == CompletingRebalance {
			g.prepare(now, Rebalance{Cause: CauseReplaced, MemberID: m.id, Why: j.Why}, fx)
			return
		}
		g.maybeComplete(now, fx)
		return
	}
	offered, ok := m.offers(g.protocol)
	if !ok || g.elect() != g.protocol || !sameSubscription(metadata, offered) {
		g.rebalanceOrComplete(now, Rebalance{Cause: CauseMetadata, MemberID: m.id, Why: j.Why}, fx)
		return
	}
	reply := g.joined(m, j.Ticket)
	if wasLeader {
		if j.CanSkipAssignment {
			reply.SkipAssignment = true
		} else {
			// It must not assign: all it may know is that somebody else leads.
			reply.Leader, reply.Members = before, nil
		}
	}
	g.save(now, nil, fx)
	g.replacing = append(g.replacing, replacing{save: g.saves, ticket: j.Ticket, reply: reply})
}
