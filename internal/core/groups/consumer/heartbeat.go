package consumer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer/assignor"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Limits are the settings of the group, as they are now.
type Limits struct {
	Session, Interval time.Duration // consumer.session.timeout.ms, consumer.heartbeat.interval.ms
	MaxSize           int           // group.consumer.max.size
}

// Heartbeat is a ConsumerGroupHeartbeat. Nil means that the member says nothing
// of it: it is as before.
type Heartbeat struct {
	Limits
	MemberID             string
	Epoch                int32
	Instance, Rack       string // "": not said
	ClientID, ClientHost string
	Rebalance            time.Duration // negative: not said
	Topics               []string
	Pattern              *string
	Assignor             string
	Owned                Partitions
	Full                 bool // all that can be said is said: the member wants to hear all
}

// Reply answers a Heartbeat.
type Reply struct {
	Reason     refusal.Reason
	Detail     string // for the client, when there is a reason
	MemberID   string
	Epoch      int32
	Interval   time.Duration
	Assignment Partitions // nil: as before
}

// Effects is what a command brought about: changes to store, in order, and events
// for the log. If they cannot be stored, Undo takes them back.
type Effects struct {
	Changes []Change
	Started []classic.Rebalance
	Gone    []classic.Departure
	// Downgrade says that only members of the classic protocol are left: the
	// group is to become a classic one.
	Downgrade bool

	undo   []Change
	clocks []clocks // of members that were forgotten
}

// clocks are a member's session and deadline.
type clocks struct {
	id                string
	session, deadline time.Time
}

// do makes a change.
func (fx *Effects) do(g *Group, c Change) {
	fx.undo = append(fx.undo, c.apply(g))
	fx.Changes = append(fx.Changes, c)
}

// Heartbeat handles a heartbeat: joining, staying, leaving.
func (g *Group) Heartbeat(now time.Time, in Heartbeat, ts *Topics) (Reply, Effects) {
	var fx Effects
	refuse := func(why refusal.Reason, detail string) (Reply, Effects) {
		return Reply{Reason: why, Detail: detail, MemberID: in.MemberID, Epoch: in.Epoch}, fx
	}
	if detail := in.invalid(); detail != "" {
		return refuse(refusal.InvalidRequest, detail)
	}
	if in.Assignor != "" && !assignor.Known(in.Assignor) {
		return refuse(refusal.UnsupportedAssignor, refusal.UnsupportedAssignor.Error())
	}
	if in.Pattern != nil && *in.Pattern != "" {
		if _, err := pattern(*in.Pattern); err != nil {
			return refuse(refusal.InvalidRegularExpression, fmt.Sprintf("%v: %v", refusal.InvalidRegularExpression, err))
		}
	}
	if in.Epoch < 0 {
		return g.leave(in, ts)
	}
	m := g.members[in.MemberID]
	if m == nil && len(g.members) >= in.MaxSize && (in.Instance == "" || g.statics[in.Instance] == "") {
		return refuse(refusal.GroupMaxSizeReached, "the group has group.consumer.max.size members; raise it or use another group")
	}
	m, why, detail := g.find(in, &fx)
	if why != refusal.None {
		return refuse(why, detail)
	}
	g.update(m, m.hears(in), ts, &fx)
	next := g.reconcile(now, in.MemberID, in.Owned, &fx)
	g.sessions[next.ID] = now.Add(in.Session)
	g.wakeBy(g.sessions[next.ID])

	r := Reply{MemberID: next.ID, Epoch: next.Epoch, Interval: in.Interval}
	if in.Epoch == 0 || in.Full || !next.Assigned.equal(m.Assigned) {
		r.Assignment = next.Assigned
		if r.Assignment == nil {
			r.Assignment = Partitions{}
		}
	}
	return r, fx
}

// invalid says what contradicts itself in a heartbeat, "" if nothing does.
func (in *Heartbeat) invalid() string {
	switch {
	case in.Epoch < EpochLeaveStatic:
		return "the member epoch is at least -2"
	case in.MemberID == "":
		return "the member id is empty; make one and keep it"
	case in.Epoch == EpochLeaveStatic && in.Instance == "":
		return "only members with a group.instance.id leave with epoch -2"
	case in.Epoch != 0:
		return ""
	case in.Rebalance < 0:
		return "a member that joins gives its rebalance timeout"
	case in.Owned == nil || len(in.Owned) > 0:
		return "a member that joins owns no partitions; send an empty list"
	case in.Topics == nil && in.Pattern == nil:
		return "a member that joins gives topic names or a pattern"
	}
	return ""
}

// find gives the member that heartbeats: a new one, one that takes over an
// instance id, or one that is known and in step.
func (g *Group) find(in Heartbeat, fx *Effects) (*Member, refusal.Reason, string) {
	m := g.members[in.MemberID]
	if in.Instance != "" {
		holder := g.members[g.statics[in.Instance]]
		switch {
		case holder == nil && in.Epoch > 0:
			return nil, refusal.UnknownMember, "no member has this group.instance.id; join with epoch 0"
		case holder == nil:
			return &Member{ID: in.MemberID, State: Settled}, refusal.None, ""
		case holder.ID != in.MemberID && in.Epoch > 0:
			return nil, refusal.FencedInstance, refusal.FencedInstance.Error()
		case holder.ID != in.MemberID && holder.Epoch != EpochLeaveStatic && holder.Classic == nil:
			return nil, refusal.UnreleasedInstance, refusal.UnreleasedInstance.Error()
		case holder.ID != in.MemberID:
			return g.takeOver(holder, in.MemberID, fx), refusal.None, ""
		}
		m = holder
	}
	switch {
	case m == nil && in.Epoch > 0:
		return nil, refusal.UnknownMember, "the member is not in the group; join with epoch 0"
	case m == nil:
		return &Member{ID: in.MemberID, State: Settled}, refusal.None, ""
	case in.Epoch == 0:
		return g.restart(m, fx), refusal.None, ""
	case in.Epoch == m.Epoch, in.Epoch == m.Previous && in.Owned != nil && in.Owned.within(m.Assigned):
		return m, refusal.None, "" // the second: the answer with the new epoch was lost
	}
	return nil, refusal.FencedMemberEpoch, fmt.Sprintf("the member's epoch is %d, not %d; give up all partitions and join with epoch 0", m.Epoch, in.Epoch)
}

// restart is a member that joins again under its id: it has given up what it had.
// What is free of its target it gets again at once.
func (g *Group) restart(m *Member, fx *Effects) *Member {
	if m.Epoch != 0 {
		fx.do(g, SetCurrent{m.ID, &Current{State: Settled}})
	}
	return g.members[m.ID]
}

// takeOver gives a static member's place and target to its successor.
func (g *Group) takeOver(old *Member, id string, fx *Effects) *Member {
	m := *old
	m.ID, m.State = id, 0
	target := g.target[old.ID]
	g.forget(old, fx)
	fx.do(g, SetMember{id, &m})
	if target != nil {
		fx.do(g, SetTarget{id, target})
	}
	return g.members[id]
}

// forget removes all that is stored of a member.
func (g *Group) forget(m *Member, fx *Effects) {
	fx.do(g, SetCurrent{m.ID, nil})
	fx.do(g, SetTarget{m.ID, nil})
	fx.do(g, SetMember{m.ID, nil})
	fx.clocks = append(fx.clocks, clocks{m.ID, g.sessions[m.ID], g.deadline[m.ID]})
	delete(g.sessions, m.ID)
	delete(g.deadline, m.ID)
}

// hears gives the member as it is after what it has told.
func (m *Member) hears(in Heartbeat) *Member {
	n := *m
	n.Classic = nil
	n.ClientID, n.ClientHost = in.ClientID, in.ClientHost
	n.Instance = cmp.Or(in.Instance, n.Instance)
	n.Rack = cmp.Or(in.Rack, n.Rack)
	n.Assignor = cmp.Or(in.Assignor, n.Assignor)
	if in.Rebalance >= 0 {
		n.Rebalance = in.Rebalance
	}
	if in.Topics != nil {
		n.Topics = slices.Compact(slices.Sorted(slices.Values(in.Topics)))
	}
	if in.Pattern != nil {
		n.Pattern = *in.Pattern
	}
	return &n
}

// told compares what two versions of a member have told.
func (m *Member) told(n *Member) bool {
	return m.Instance == n.Instance && m.Rack == n.Rack && m.ClientID == n.ClientID && m.ClientHost == n.ClientHost &&
		m.Rebalance == n.Rebalance && m.Assignor == n.Assignor && m.sameSubscription(n) && m.Classic.equal(n.Classic)
}

func (m *Member) sameSubscription(n *Member) bool {
	return slices.Equal(m.Topics, n.Topics) && m.Pattern == n.Pattern
}

// update stores what a member has told, and what follows for the group: a new
// group epoch, and a new target.
func (g *Group) update(m, n *Member, ts *Topics, fx *Effects) {
	known := g.members[n.ID] != nil
	if !known || !m.told(n) {
		told := *n
		told.State = 0
		fx.do(g, SetMember{n.ID, &told})
	}
	cause := classic.Cause("")
	switch {
	case !known:
		cause = classic.CauseJoined
	case !m.sameSubscription(n):
		cause = classic.CauseMetadata
	}
	hash := g.hash
	if cause != "" || g.seen != ts.Version {
		hash = g.hashTopics(ts)
		g.seen = ts.Version
		if cause == "" && hash != g.hash {
			cause = CauseTopics
		}
	}
	if cause != "" {
		g.bump(hash, classic.Rebalance{
			Cause: cause, MemberID: n.ID, InstanceID: n.Instance, ClientID: n.ClientID, ClientHost: n.ClientHost,
		}, fx)
	}
	if g.epoch > g.assignmentEpoch {
		g.assign(ts, fx)
	}
}

// CauseTopics is a rebalance because topics came, went or grew.
const CauseTopics classic.Cause = "topics changed"

// bump begins a new group epoch.
func (g *Group) bump(hash uint64, r classic.Rebalance, fx *Effects) {
	r.Generation, r.Members = g.epoch, len(g.members)
	fx.Started = append(fx.Started, r)
	fx.do(g, SetGroup{g.epoch + 1, hash})
}

// assign computes the target of the group epoch.
func (g *Group) assign(ts *Topics, fx *Effects) {
	ms := make([]assignor.Member, 0, len(g.members))
	asked := make([]string, 0, len(g.members))
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		ms = append(ms, assignor.Member{ID: id, Instance: m.Instance, Topics: g.wanted(m, ts), Before: g.target[id]})
		asked = append(asked, m.Assignor)
	}
	as := assignor.Assign(assignor.Prefer(asked), ms)
	for _, m := range ms {
		target := Clean(as[m.ID])
		if old, ok := g.target[m.ID]; !ok || !old.equal(target) {
			fx.do(g, SetTarget{m.ID, target})
		}
	}
	fx.do(g, SetTargetEpoch{g.epoch})
}

// AssignorName is the assignor that the members' votes give.
func (g *Group) AssignorName() string {
	asked := make([]string, 0, len(g.members))
	for _, m := range g.members {
		asked = append(asked, m.Assignor)
	}
	return assignor.Prefer(asked)
}
