package classic

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Cause is why a rebalance began: a bounded set, for counters.
type Cause string

// The causes.
const (
	CauseJoined    Cause = "member joined"
	CauseLeft      Cause = "member left"
	CauseExpired   Cause = "session expired"
	CauseMetadata  Cause = "member metadata changed"
	CauseLeader    Cause = "leader rejoined"
	CauseReplaced  Cause = "static member replaced"
	CauseNoJoin    Cause = "member did not rejoin"
	CauseNoSync    Cause = "member did not sync"
	CauseNotSaved  Cause = "assignment not stored"
	CauseGroupFull Cause = "group full"
	CauseMigrated  Cause = "protocol migrated"
)

// Rebalance is an event for the log: what began (or ended) and by whom.
type Rebalance struct {
	Cause                Cause
	MemberID, InstanceID string
	ClientID, ClientHost string
	Why                  string // the client's own reason, "" when it gave none
	Generation           int32  // the generation before it began, or that it made
	Members              int
}

// Departure is an event for the log: a member is out.
type Departure struct {
	Cause                Cause
	MemberID, InstanceID string
	ClientID, ClientHost string
	Why                  string
}

func (g *Group) rebalanceOrComplete(now time.Time, r Rebalance, fx *Effects) {
	if g.state == PreparingRebalance {
		g.maybeComplete(now, fx)
		return
	}
	g.prepare(now, r, fx)
}

// prepare begins a rebalance: everybody has to join again.
func (g *Group) prepare(now time.Time, r Rebalance, fx *Effects) {
	if m := g.members[r.MemberID]; m != nil {
		r.InstanceID, r.ClientID, r.ClientHost = m.instance, m.clientID, m.clientHost
	}
	r.Generation, r.Members = g.generation, len(g.members)
	fx.Started = append(fx.Started, r)
	if g.state == CompletingRebalance {
		g.dismissSyncs(now, refusal.RebalanceInProgress, fx)
	}
	clear(g.unsynced)
	g.syncDeadline = time.Time{}

	g.initial = g.state == Empty && g.delay > 0
	wait := g.rebalanceTimeout()
	if g.initial {
		wait, g.initialLeft = g.delay, max(wait-g.delay, 0)
		g.newMember = false
	}
	g.enter(PreparingRebalance, now)
	g.joinDeadline = now.Add(wait)
	g.wakeBy(g.joinDeadline)
	g.maybeComplete(now, fx)
}

// dismissSyncs forgets the assignments and answers those that wait for one.
func (g *Group) dismissSyncs(now time.Time, why refusal.Reason, fx *Effects) {
	for _, m := range g.order {
		m.assignment = nil
		if m.sync != 0 {
			fx.failSync(m, why)
			g.arm(m, now)
		}
	}
}

// maybeComplete ends the join phase when all have joined.
func (g *Group) maybeComplete(now time.Time, fx *Effects) {
	if g.state == PreparingRebalance && !g.initial && g.allJoined() {
		g.complete(now, fx)
	}
}

func (g *Group) allJoined() bool {
	if len(g.pending) > 0 {
		return false
	}
	for _, m := range g.order {
		if m.join == 0 {
			return false
		}
	}
	return true
}

// joinDue handles the end of the wait in PreparingRebalance.
func (g *Group) joinDue(now time.Time, fx *Effects) {
	if g.initial && g.newMember && g.initialLeft > 0 {
		g.newMember = false
		wait := min(g.delay, g.initialLeft)
		g.initialLeft -= wait
		g.joinDeadline = now.Add(wait)
		g.wakeBy(g.joinDeadline)
		return
	}
	g.complete(now, fx)
}

// complete ends the join phase: the next generation is of those who joined, and
// of the static members, which may be restarting.
func (g *Group) complete(now time.Time, fx *Effects) {
	g.initial, g.joinDeadline = false, time.Time{}
	for _, m := range append([]*member(nil), g.order...) {
		if m.join == 0 && m.instance == "" {
			g.drop(m, fx)
			fx.gone(m, CauseNoJoin, "")
		}
	}
	if !g.electLeader() && len(g.members) > 0 {
		// Only static members are left and none has come back: wait until they
		// do or their sessions end.
		g.joinDeadline = now.Add(g.rebalanceTimeout())
		g.wakeBy(g.joinDeadline)
		return
	}
	g.generation++
	if len(g.members) == 0 {
		g.empty(now, fx)
		return
	}
	g.protocol = g.elect()
	g.learnTopics()
	g.enter(CompletingRebalance, now)
	for _, m := range g.order {
		if m.join != 0 {
			fx.Joins = append(fx.Joins, g.joined(m, m.join))
			m.join = 0
		}
		m.isNew = false
		g.arm(m, now)
		g.unsynced[m.id] = true
	}
	g.syncDeadline = now.Add(g.rebalanceTimeout())
	g.wakeBy(g.syncDeadline)
}

// electLeader keeps a leader that has joined or takes the first member that has.
func (g *Group) electLeader() bool {
	if m := g.members[g.leader]; m != nil && m.join != 0 {
		return true
	}
	for _, m := range g.order {
		if m.join != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

func (g *Group) empty(now time.Time, fx *Effects) {
	g.protocol, g.leader = "", ""
	g.learnTopics()
	clear(g.unsynced)
	g.syncDeadline = time.Time{}
	g.enter(Empty, now)
	g.save(now, nil, fx)
}

// remove takes a member out and lets the others rebalance.
func (g *Group) remove(now time.Time, m *member, cause Cause, why string, fx *Effects) {
	g.drop(m, fx)
	fx.gone(m, cause, why)
	g.afterRemoval(now, m, cause, why, fx)
}

func (g *Group) afterRemoval(now time.Time, m *member, cause Cause, why string, fx *Effects) {
	switch g.state {
	case CompletingRebalance, Stable:
		g.prepare(now, Rebalance{
			Cause: cause, MemberID: m.id, InstanceID: m.instance,
			ClientID: m.clientID, ClientHost: m.clientHost, Why: why,
		}, fx)
	case PreparingRebalance:
		if g.allJoined() && (!g.initial || len(g.members) == 0) {
			g.complete(now, fx)
		}
	}
}

func (fx *Effects) gone(m *member, cause Cause, why string) {
	fx.Gone = append(fx.Gone, Departure{
		Cause: cause, MemberID: m.id, InstanceID: m.instance,
		ClientID: m.clientID, ClientHost: m.clientHost, Why: why,
	})
}
