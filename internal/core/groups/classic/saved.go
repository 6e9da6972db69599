package classic

import "time"

// Saved is the image of a group that is stored: what Kafka's GroupMetadataValue holds.
type Saved struct {
	Number       uint64 // for Stored; not part of what is stored
	ProtocolType string
	Generation   int32
	Protocol     string
	Leader       string
	Since        time.Time
	Members      []SavedMember
}

// SavedMember is one member of an image.
type SavedMember struct {
	ID, Instance         string
	ClientID, ClientHost string
	Rebalance, Session   time.Duration
	Subscription         []byte
	Assignment           []byte
}

// save adds the group's image to fx, with assignments in place of the members'
// own if they are given.
func (g *Group) save(now time.Time, assignments map[string][]byte, fx *Effects) {
	g.saves++
	g.unsaved = false
	s := &Saved{
		Number: g.saves, ProtocolType: g.protocolType, Generation: g.generation,
		Protocol: g.protocol, Leader: g.leader, Since: now,
		Members: make([]SavedMember, 0, len(g.order)),
	}
	for _, m := range g.order {
		metadata, _ := m.offers(g.protocol)
		assignment := m.assignment
		if assignments != nil {
			assignment = assignments[m.id]
		}
		s.Members = append(s.Members, SavedMember{
			ID: m.id, Instance: m.instance, ClientID: m.clientID, ClientHost: m.clientHost,
			Rebalance: m.rebalance, Session: m.session, Subscription: metadata, Assignment: assignment,
		})
	}
	fx.Save = s
}

// Image is the group as Saved would have it now; for checks and debug pages.
func (g *Group) Image() Saved {
	var fx Effects
	unsaved, saves := g.unsaved, g.saves
	g.save(g.since, nil, &fx)
	g.unsaved, g.saves = unsaved, saves
	fx.Save.Number = 0
	return *fx.Save
}

// Restore makes a group from its image. Members keep their generation and get a
// whole session from now on to be heard of.
func Restore(id string, s Saved, now time.Time) *Group {
	g := New(id, s.Since)
	g.unsaved = false
	g.protocolType, g.generation = s.ProtocolType, s.Generation
	g.protocol = s.Protocol
	for _, sm := range s.Members {
		m := &member{
			id: sm.ID, instance: sm.Instance, clientID: sm.ClientID, clientHost: sm.ClientHost,
			rebalance: sm.Rebalance, session: sm.Session, assignment: sm.Assignment,
			protocols: []Protocol{{Name: s.Protocol, Metadata: sm.Subscription}},
		}
		g.add(m)
		g.arm(m, now)
	}
	if len(g.members) > 0 {
		g.state, g.leader = Stable, s.Leader
	}
	g.learnTopics()
	return g
}

// Description is a group as DescribeGroups shows it.
type Description struct {
	State        State
	ProtocolType string
	Protocol     string
	Generation   int32
	Leader       string
	Since        time.Time
	Members      []MemberDescription
}

// MemberDescription is one member of a Description.
type MemberDescription struct {
	ID, Instance         string
	ClientID, ClientHost string
	Metadata             []byte // of the chosen protocol; only in Stable
	Assignment           []byte // only in Stable
}

// Describe shows the group. Metadata and assignments are shown in Stable only:
// before, they belong to no generation.
func (g *Group) Describe() Description {
	d := Description{
		State: g.state, ProtocolType: g.protocolType, Generation: g.generation,
		Leader: g.leader, Since: g.since, Members: make([]MemberDescription, 0, len(g.order)),
	}
	if g.state == Stable {
		d.Protocol = g.protocol
	}
	for _, m := range g.order {
		md := MemberDescription{ID: m.id, Instance: m.instance, ClientID: m.clientID, ClientHost: m.clientHost}
		if g.state == Stable {
			md.Metadata, _ = m.offers(g.protocol)
			md.Assignment = m.assignment
		}
		d.Members = append(d.Members, md)
	}
	return d
}
