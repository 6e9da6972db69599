package classic

import "time"

// Export is a group with all that its members offer, to go on in another protocol.
type Export struct {
	ID           string
	ProtocolType string
	Generation   int32
	Members      []ExportedMember
}

// ExportedMember is one member of an Export.
type ExportedMember struct {
	ID, Instance         string
	ClientID, ClientHost string
	Rebalance, Session   time.Duration
	Protocols            []Protocol
	Assignment           []byte
}

// Export gives the group's members as they are.
func (g *Group) Export() Export {
	x := Export{ID: g.id, ProtocolType: g.protocolType, Generation: g.generation}
	for _, m := range g.order {
		protocols := m.protocols
		if metadata, ok := m.offers(g.protocol); ok {
			// The chosen one first: it is what the member subscribes by.
			protocols = []Protocol{{g.protocol, metadata}}
			for _, p := range m.protocols {
				if p.Name != g.protocol {
					protocols = append(protocols, p)
				}
			}
		}
		x.Members = append(x.Members, ExportedMember{
			ID: m.id, Instance: m.instance, ClientID: m.clientID, ClientHost: m.clientHost,
			Rebalance: m.rebalance, Session: m.session, Protocols: protocols, Assignment: m.assignment,
		})
	}
	return x
}

// Adopt makes a group of members that come from another protocol, with a leader and
// a rebalance that is to begin at once.
func Adopt(now time.Time, x Export) (*Group, Effects) {
	var fx Effects
	g := New(x.ID, now)
	g.protocolType, g.generation = x.ProtocolType, x.Generation
	for _, e := range x.Members {
		m := &member{
			id: e.ID, instance: e.Instance, clientID: e.ClientID, clientHost: e.ClientHost,
			rebalance: e.Rebalance, session: e.Session, protocols: e.Protocols, assignment: e.Assignment,
		}
		g.add(m)
		g.arm(m, now)
	}
	g.state, g.protocol = Stable, g.elect()
	g.learnTopics()
	g.save(now, nil, &fx)
	g.prepare(now, Rebalance{Cause: CauseMigrated, MemberID: g.leader}, &fx)
	return g, fx
}
