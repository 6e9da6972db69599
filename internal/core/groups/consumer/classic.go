package consumer

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/model"
)

// classicType is the protocol type that consumers of the classic protocol have.
const classicType = "consumer"

func (c *ClassicMember) equal(d *ClassicMember) bool {
	if c == nil || d == nil {
		return c == d
	}
	return c.Session == d.Session && slices.EqualFunc(c.Protocols, d.Protocols, func(a, b classic.Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// onlyClassic says that there are members, all of the classic protocol.
func (g *Group) onlyClassic() bool {
	for _, m := range g.members {
		if m.Classic == nil {
			return false
		}
	}
	return len(g.members) > 0
}

// subscription reads what a member of the classic protocol subscribes to.
func subscription(protocols []classic.Protocol) (sub kmsg.ConsumerMemberMetadata, ok bool) {
	if len(protocols) == 0 || sub.ReadFrom(protocols[0].Metadata) != nil {
		return sub, false
	}
	return sub, true
}

// supports says whether a member of the classic protocol fits the others.
func (g *Group) supports(j classic.Join) bool {
	if j.ProtocolType != classicType {
		return false
	}
	for _, p := range j.Protocols {
		common := true
		for _, m := range g.members {
			if m.Classic != nil && m.ID != j.MemberID && !slices.ContainsFunc(m.Classic.Protocols, func(q classic.Protocol) bool { return q.Name == p.Name }) {
				common = false
			}
		}
		if common {
			return true
		}
	}
	return false
}

// Join handles the JoinGroup of a member that still speaks the classic protocol.
// It is answered at once: nobody waits for anybody here.
func (g *Group) Join(now time.Time, j classic.Join, maxSize int, ts *Topics) (classic.JoinReply, Effects) {
	var fx Effects
	refuse := func(why refusal.Reason, id string) (classic.JoinReply, Effects) {
		return classic.JoinReply{To: j.Ticket, Reason: why, MemberID: id, Generation: -1}, fx
	}
	sub, ok := subscription(j.Protocols)
	if !ok || !g.supports(j) {
		return refuse(refusal.InconsistentProtocol, j.MemberID)
	}
	if j.Session < j.SessionTimeoutMin || j.Session > j.SessionTimeoutMax {
		return refuse(refusal.InvalidSessionTimeout, j.MemberID)
	}
	holder := g.members[g.statics[j.InstanceID]]
	if g.members[j.MemberID] == nil && holder == nil && len(g.members) >= maxSize {
		return refuse(refusal.GroupMaxSizeReached, "")
	}
	id := j.MemberID
	if id == "" {
		id = j.FreshID
		if j.RequireKnownID && j.InstanceID == "" {
			return refuse(refusal.MemberIDRequired, id)
		}
	}
	m := g.members[id]
	switch {
	case j.InstanceID != "" && holder == nil && j.MemberID != "":
		return refuse(refusal.UnknownMember, id)
	case holder != nil && holder.ID != id && j.MemberID != "":
		return refuse(refusal.FencedInstance, id)
	case holder != nil && holder.ID != id:
		m = g.takeOver(holder, id, &fx)
	case m == nil:
		m = &Member{ID: id, State: Settled}
	}
	n := *m
	n.Instance, n.ClientID, n.ClientHost, n.Rebalance = j.InstanceID, j.ClientID, j.ClientHost, j.Rebalance
	n.Topics = slices.Compact(slices.Sorted(slices.Values(sub.Topics)))
	n.Pattern, n.Assignor = "", ""
	n.Classic = &ClassicMember{Session: j.Session, Protocols: j.Protocols}
	g.update(m, &n, ts, &fx)
	next := g.reconcile(now, id, ownedBy(sub, ts), &fx)
	g.sessions[id], g.deadline[id] = now.Add(j.Session), now.Add(j.Rebalance)
	g.wakeBy(g.sessions[id])
	g.wakeBy(g.deadline[id])
	fx.Downgrade = g.onlyClassic()
	return classic.JoinReply{
		To: j.Ticket, MemberID: id, Generation: next.Epoch, ProtocolType: classicType, Protocol: j.Protocols[0].Name,
	}, fx
}

// ownedBy gives what a classic subscription says that its member owns.
func ownedBy(sub kmsg.ConsumerMemberMetadata, ts *Topics) Partitions {
	owned := map[model.TopicID][]int32{}
	for _, o := range sub.OwnedPartitions {
		if t, ok := ts.byName[o.Topic]; ok {
			owned[t.ID] = append(owned[t.ID], o.Partitions...)
		}
	}
	return Clean(owned)
}

// classicMember finds a member of the classic protocol in its generation.
func (g *Group) classicMember(id, instance string, generation int32) (*Member, refusal.Reason) {
	m, why := g.member(id, instance)
	switch {
	case why != refusal.None:
		return nil, why
	case m.Classic == nil:
		return nil, refusal.UnknownMember
	case generation != m.Epoch:
		return nil, refusal.IllegalGeneration
	}
	return m, refusal.None
}

// behind says that a member has to rejoin: for a new epoch, or to give up
// partitions, or because what it waits for is free.
func (g *Group) behind(m *Member) bool {
	if m.Epoch < g.epoch { // also while it is Unrevoked
		return true
	}
	if m.State != Unreleased {
		return false
	}
	missing := g.target[m.ID].without(m.Assigned)
	free := missing.filter(func(id model.TopicID, p int32) bool {
		_, held := g.holders[slot{id, p}]
		return !held
	})
	return len(free) == len(missing)
}

// ClassicHeartbeat handles a Heartbeat of a member of the classic protocol.
func (g *Group) ClassicHeartbeat(now time.Time, id, instance string, generation int32) refusal.Reason {
	m, why := g.classicMember(id, instance, generation)
	if why != refusal.None {
		return why
	}
	g.sessions[id] = now.Add(m.Classic.Session)
	g.wakeBy(g.sessions[id])
	if !g.behind(m) {
		return refusal.None
	}
	g.mustRejoin(now, m)
	return refusal.RebalanceInProgress
}

// mustRejoin gives a member its rebalance timeout to come.
func (g *Group) mustRejoin(now time.Time, m *Member) {
	if g.deadline[m.ID].IsZero() {
		g.deadline[m.ID] = now.Add(m.Rebalance)
		g.wakeBy(g.deadline[m.ID])
	}
}

// Sync handles a SyncGroup of a member of the classic protocol.
func (g *Group) Sync(now time.Time, s classic.Sync, ts *Topics) classic.SyncReply {
	m, why := g.classicMember(s.MemberID, s.InstanceID, s.Generation)
	switch {
	case why != refusal.None:
		return classic.SyncReply{To: s.Ticket, Reason: why}
	case s.ProtocolType != nil && *s.ProtocolType != classicType,
		s.Protocol != nil && *s.Protocol != m.Classic.Protocols[0].Name:
		return classic.SyncReply{To: s.Ticket, Reason: refusal.InconsistentProtocol}
	case m.Epoch < g.epoch && m.State != Unrevoked:
		g.mustRejoin(now, m)
		return classic.SyncReply{To: s.Ticket, Reason: refusal.RebalanceInProgress}
	}
	delete(g.deadline, m.ID)
	g.sessions[m.ID] = now.Add(m.Classic.Session)
	g.wakeBy(g.sessions[m.ID])
	return classic.SyncReply{
		To: s.Ticket, ProtocolType: classicType, Protocol: m.Classic.Protocols[0].Name,
		Assignment: classicAssignment(m, ts),
	}
}

// classicAssignment is what m has, as the classic protocol's consumers read it.
func classicAssignment(m *Member, ts *Topics) []byte {
	var a kmsg.ConsumerMemberAssignment
	if sub, ok := subscription(m.Classic.Protocols); ok {
		a.Version = sub.Version
	}
	for _, id := range m.Assigned.Topics() {
		if name := ts.Name(id); name != "" {
			a.Topics = append(a.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: name, Partitions: m.Assigned[id]})
		}
	}
	return a.AppendTo(nil)
}

// Leave handles a LeaveGroup, of members of either protocol: an administrator
// removes members by it.
func (g *Group) Leave(leavers []classic.Leaver, ts *Topics) ([]refusal.Reason, Effects) {
	var fx Effects
	why := make([]refusal.Reason, len(leavers))
	var out []*Member
	for i, l := range leavers {
		id := l.MemberID
		if id == "" && l.InstanceID != "" {
			id = g.statics[l.InstanceID]
		}
		m, reason := g.member(id, l.InstanceID)
		if reason == refusal.None && slices.Contains(out, m) {
			reason = refusal.UnknownMember
		}
		if why[i] = reason; reason == refusal.None {
			out = append(out, m)
		}
	}
	if len(out) > 0 {
		g.remove(out, classic.CauseLeft, leavers[0].Why, ts, &fx)
	}
	return why, fx
}
