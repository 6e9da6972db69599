package consumer

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/model"
)

// FromClassic makes a group of a classic one's members, who go on with what they
// have. It returns false when the classic group is not one of consumers.
func FromClassic(now time.Time, c *classic.Group, ts *Topics) (*Group, Effects, bool) {
	var fx Effects
	x := c.Export()
	if x.ProtocolType != classicType {
		return nil, fx, false
	}
	g := New(x.ID)
	epoch := max(x.Generation, 1)
	for _, m := range x.Members {
		sub, ok := subscription(m.Protocols)
		if !ok {
			return nil, fx, false
		}
		assigned := assignmentOf(m.Assignment, ts).filter(func(id model.TopicID, p int32) bool {
			_, held := g.holders[slot{id, p}]
			return !held
		})
		n := &Member{
			ID: m.ID, Instance: m.Instance, ClientID: m.ClientID, ClientHost: m.ClientHost, Rebalance: m.Rebalance,
			Topics:  slices.Compact(slices.Sorted(slices.Values(sub.Topics))),
			Classic: &ClassicMember{Session: m.Session, Protocols: m.Protocols},
		}
		fx.do(g, SetMember{m.ID, n})
		fx.do(g, SetTarget{m.ID, assigned})
		fx.do(g, SetCurrent{m.ID, &Current{Epoch: epoch, Previous: epoch, State: Settled, Assigned: assigned}})
	}
	fx.do(g, SetGroup{epoch, g.hashTopics(ts)})
	fx.do(g, SetTargetEpoch{epoch})
	g.seen = ts.Version
	g.Resume(now, 0)
	return g, fx, true
}

// assignmentOf reads what a leader has assigned to a consumer.
func assignmentOf(b []byte, ts *Topics) Partitions {
	var a kmsg.ConsumerMemberAssignment
	if len(b) == 0 || a.ReadFrom(b) != nil {
		return Partitions{}
	}
	m := map[model.TopicID][]int32{}
	for _, t := range a.Topics {
		if topic, ok := ts.byName[t.Topic]; ok {
			m[topic.ID] = append(m[topic.ID], t.Partitions...)
		}
	}
	return Clean(m)
}

// ToClassic makes a classic group of the members, when all of them speak that
// protocol, and begins a rebalance in it.
func (g *Group) ToClassic(now time.Time, ts *Topics) (*classic.Group, classic.Effects) {
	x := classic.Export{ID: g.id, ProtocolType: classicType, Generation: g.epoch}
	for _, m := range g.sorted() {
		x.Members = append(x.Members, classic.ExportedMember{
			ID: m.ID, Instance: m.Instance, ClientID: m.ClientID, ClientHost: m.ClientHost,
			Rebalance: m.Rebalance, Session: m.Classic.Session, Protocols: m.Classic.Protocols,
			Assignment: classicAssignment(m, ts),
		})
	}
	return classic.Adopt(now, x)
}

// End gives the changes that remove all that is stored of the group.
func (g *Group) End() []Change {
	var cs []Change
	for _, m := range g.sorted() {
		cs = append(cs, SetCurrent{m.ID, nil}, SetTarget{m.ID, nil}, SetMember{m.ID, nil})
	}
	return append(cs, SetTargetEpoch{0}, SetGroup{0, 0})
}

// Sum gives the changes that make the group as it is: what a log of it comes to.
func (g *Group) Sum() []Change {
	cs := []Change{SetGroup{g.epoch, g.hash}, SetTargetEpoch{g.assignmentEpoch}}
	for _, m := range g.sorted() {
		told := *m
		told.State = 0
		c := m.current()
		cs = append(cs, SetMember{m.ID, &told}, SetCurrent{m.ID, &c})
		if target, ok := g.target[m.ID]; ok {
			cs = append(cs, SetTarget{m.ID, target})
		}
	}
	return cs
}

// Description is a group as ConsumerGroupDescribe shows it.
type Description struct {
	State                  State
	Epoch, AssignmentEpoch int32
	Assignor               string
	Members                []MemberDescription
}

// MemberDescription is one member of a Description.
type MemberDescription struct {
	Member
	Target Partitions
}

// Describe shows the group.
func (g *Group) Describe() Description {
	d := Description{State: g.State(), Epoch: g.epoch, AssignmentEpoch: g.assignmentEpoch, Assignor: g.AssignorName()}
	for _, m := range g.sorted() {
		d.Members = append(d.Members, MemberDescription{*m, g.target[m.ID]})
	}
	return d
}
