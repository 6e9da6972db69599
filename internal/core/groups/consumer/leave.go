package consumer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// leave handles a heartbeat with a leaving epoch. A static member that will be
// back keeps its partitions until its session ends.
func (g *Group) leave(in Heartbeat, ts *Topics) (Reply, Effects) {
	var fx Effects
	m, why := g.member(in.MemberID, in.Instance)
	if why != refusal.None {
		return Reply{Reason: why, Detail: why.Error(), MemberID: in.MemberID, Epoch: in.Epoch}, fx
	}
	if in.Epoch == EpochLeaveStatic && m.Instance != "" {
		fx.do(g, SetCurrent{m.ID, &Current{Epoch: EpochLeaveStatic, Previous: m.Epoch, State: m.State, Assigned: m.Assigned}})
		delete(g.deadline, m.ID)
		return Reply{MemberID: m.ID, Epoch: in.Epoch}, fx
	}
	g.remove([]*Member{m}, classic.CauseLeft, "", ts, &fx)
	return Reply{MemberID: in.MemberID, Epoch: in.Epoch}, fx
}

// member finds the member that a request names, or says why it may not speak.
func (g *Group) member(id, instance string) (*Member, refusal.Reason) {
	if instance != "" {
		holder, ok := g.statics[instance]
		switch {
		case !ok:
			return nil, refusal.UnknownMember
		case holder != id:
			return nil, refusal.FencedInstance
		}
	}
	m := g.members[id]
	if m == nil {
		return nil, refusal.UnknownMember
	}
	return m, refusal.None
}

// remove takes members out, and begins a new epoch for the others.
func (g *Group) remove(ms []*Member, cause classic.Cause, why string, ts *Topics, fx *Effects) {
	for _, m := range ms {
		g.forget(m, fx)
		fx.Gone = append(fx.Gone, classic.Departure{
			Cause: cause, MemberID: m.ID, InstanceID: m.Instance, ClientID: m.ClientID, ClientHost: m.ClientHost, Why: why,
		})
	}
	last := ms[len(ms)-1]
	g.bump(g.hashTopics(ts), classic.Rebalance{
		Cause: cause, MemberID: last.ID, InstanceID: last.Instance, ClientID: last.ClientID, ClientHost: last.ClientHost, Why: why,
	}, fx)
	g.seen = ts.Version
	fx.Downgrade = g.onlyClassic()
}

// CauseSlow is a member that did not give up partitions, rejoin or sync within the
// rebalance timeout.
const CauseSlow classic.Cause = "member did not reconcile"

// Tick does what is due by time alone: sessions that are over, and members that
// did not give up partitions, rejoin or sync in time.
func (g *Group) Tick(now time.Time, ts *Topics) Effects {
	var fx Effects
	if g.wake.IsZero() || now.Before(g.wake) {
		return fx
	}
	var expired, slow []*Member
	for _, m := range g.sorted() {
		switch {
		case due(g.sessions[m.ID], now):
			expired = append(expired, m)
		case due(g.deadline[m.ID], now):
			slow = append(slow, m)
		}
	}
	if len(expired) > 0 {
		g.remove(expired, classic.CauseExpired, "", ts, &fx)
	}
	if len(slow) > 0 {
		g.remove(slow, CauseSlow, "", ts, &fx)
	}
	g.wake = time.Time{}
	for id := range g.members {
		g.wakeBy(g.sessions[id])
		g.wakeBy(g.deadline[id])
	}
	return fx
}

// sorted lists the members by id.
func (g *Group) sorted() []*Member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *Member) int { return cmp.Compare(a.ID, b.ID) })
}

func due(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// Resume begins the sessions of all members anew, after a start of the broker.
func (g *Group) Resume(now time.Time, session time.Duration) {
	for id, m := range g.members {
		d := session
		if m.Classic != nil {
			d = m.Classic.Session
		}
		g.sessions[id] = now.Add(d)
		g.wakeBy(g.sessions[id])
		if m.State == Unrevoked && m.Classic == nil {
			g.deadline[id] = now.Add(m.Rebalance)
			g.wakeBy(g.deadline[id])
		}
	}
}

// CheckCommit says whether an offset commit may be accepted.
func (g *Group) CheckCommit(id, instance string, epoch int32) refusal.Reason {
	if epoch < 0 && len(g.members) == 0 {
		return refusal.None // an administrator
	}
	m, why := g.member(id, instance)
	switch {
	case why != refusal.None:
		return why
	case epoch == m.Epoch:
		return refusal.None
	case m.Classic != nil:
		return refusal.IllegalGeneration
	}
	return refusal.StaleMemberEpoch
}

// CheckFetch says whether a member may fetch offsets; who names none may.
func (g *Group) CheckFetch(id string, epoch int32) refusal.Reason {
	if id == "" && epoch < 0 {
		return refusal.None
	}
	return g.CheckCommit(id, "", epoch)
}
