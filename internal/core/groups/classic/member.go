package classic

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Heartbeat keeps a member's session alive and tells it to rejoin when it must.
func (g *Group) Heartbeat(now time.Time, id, instance string, generation int32) refusal.Reason {
	if g.state == Dead {
		return refusal.CoordinatorNotAvailable
	}
	m, why := g.check(id, instance)
	if why != refusal.None {
		return why
	}
	if generation != g.generation {
		return refusal.IllegalGeneration
	}
	switch g.state {
	case Empty:
		return refusal.UnknownMember
	case PreparingRebalance:
		g.arm(m, now)
		return refusal.RebalanceInProgress
	default:
		g.arm(m, now)
		return refusal.None
	}
}

// CheckCommit says whether an offset commit may be accepted. A member's commit
// keeps its session alive. Transactional commits are exempt from what versions
// without member ids cannot know (KIP-447).
func (g *Group) CheckCommit(now time.Time, id, instance string, generation int32, transactional bool) refusal.Reason {
	if g.state == Dead {
		return refusal.CoordinatorNotAvailable
	}
	if generation < 0 && g.state == Empty {
		return refusal.None // an administrator, or a consumer without group management
	}
	if generation >= 0 || id != "" || instance != "" {
		m, why := g.check(id, instance)
		if why != refusal.None {
			return why
		}
		if generation != g.generation {
			return refusal.IllegalGeneration
		}
		if !transactional && g.state == CompletingRebalance {
			return refusal.RebalanceInProgress
		}
		if g.state == Stable || g.state == PreparingRebalance {
			g.arm(m, now)
		}
		return refusal.None
	}
	if !transactional && g.state != Empty {
		return refusal.UnknownMember
	}
	return refusal.None
}

// Leaver names a member that leaves: by id, or by instance id alone.
type Leaver struct {
	MemberID, InstanceID string
	Why                  string
}

// Leave removes members, with one rebalance for all, and says of each whether it was there.
func (g *Group) Leave(now time.Time, leavers []Leaver) ([]refusal.Reason, Effects) {
	var fx Effects
	why := make([]refusal.Reason, len(leavers))
	var last *member
	var lastWhy string
	pendingLeft := false
	for i, l := range leavers {
		if g.state == Dead {
			why[i] = refusal.CoordinatorNotAvailable
			continue
		}
		if _, ok := g.pending[l.MemberID]; ok {
			delete(g.pending, l.MemberID)
			pendingLeft = true
			continue
		}
		var m *member
		if l.MemberID == "" {
			if m = g.statics[l.InstanceID]; m == nil || l.InstanceID == "" {
				why[i] = refusal.UnknownMember
				continue
			}
		} else if m, why[i] = g.check(l.MemberID, l.InstanceID); why[i] != refusal.None {
			continue
		}
		g.drop(m, &fx)
		fx.gone(m, CauseLeft, l.Why)
		last, lastWhy = m, l.Why
	}
	switch {
	case last != nil:
		g.afterRemoval(now, last, CauseLeft, lastWhy, &fx)
	case pendingLeft:
		g.maybeComplete(now, &fx)
	}
	return why, fx
}

// Tick does what is due by time alone.
func (g *Group) Tick(now time.Time) Effects {
	var fx Effects
	if g.wake.IsZero() || now.Before(g.wake) || g.state == Dead {
		return fx
	}
	g.expirePending(now, &fx)
	for _, m := range append([]*member(nil), g.order...) {
		if m.deadline.IsZero() || now.Before(m.deadline) || g.members[m.id] != m {
			continue
		}
		if !m.isNew && (m.join != 0 || m.sync != 0) {
			m.deadline = time.Time{} // its parked request speaks for it; the answer arms it again
			continue
		}
		g.remove(now, m, CauseExpired, "", &fx)
	}
	if g.restart {
		g.restart = false
		if g.state == CompletingRebalance {
			g.prepare(now, Rebalance{Cause: CauseNotSaved, MemberID: g.leader}, &fx)
		}
	}
	if due(g.syncDeadline, now) {
		g.expireSync(now, &fx)
	}
	if g.state == PreparingRebalance && due(g.joinDeadline, now) {
		g.joinDue(now, &fx)
	}
	g.rewind()
	return fx
}

func due(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

func (g *Group) expirePending(now time.Time, fx *Effects) {
	n := len(g.pending)
	for id, until := range g.pending {
		if due(until, now) {
			delete(g.pending, id)
		}
	}
	if len(g.pending) < n {
		if g.state == PreparingRebalance && g.allJoined() && !g.initial {
			g.complete(now, fx)
		}
	}
}

// expireSync removes the members that joined the generation and never synced.
func (g *Group) expireSync(now time.Time, fx *Effects) {
	g.syncDeadline = time.Time{}
	if g.state != CompletingRebalance && g.state != Stable {
		return
	}
	var last *member
	for _, m := range append([]*member(nil), g.order...) {
		if g.unsynced[m.id] {
			g.drop(m, fx)
			fx.gone(m, CauseNoSync, "")
			last = m
		}
	}
	if last != nil {
		g.afterRemoval(now, last, CauseNoSync, "", fx)
	}
}

// rewind recomputes when Tick is due next.
func (g *Group) rewind() {
	g.wake = time.Time{}
	for _, m := range g.order {
		g.wakeBy(m.deadline)
	}
	for _, until := range g.pending {
		g.wakeBy(until)
	}
	g.wakeBy(g.syncDeadline)
	if g.state == PreparingRebalance {
		g.wakeBy(g.joinDeadline)
	}
}

// Kill ends the group: it was deleted, or the broker stops. Whoever waits is answered.
func (g *Group) Kill(now time.Time, why refusal.Reason) Effects {
	var fx Effects
	for _, m := range g.order {
		fx.fence(m, why)
	}
	g.wake = time.Time{}
	g.enter(Dead, now)
	return fx
}
