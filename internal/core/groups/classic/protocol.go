package classic

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerProtocol is the protocol type whose metadata names topics.
const consumerProtocol = "consumer"

// offers finds a protocol that m supports.
func (m *member) offers(name string) ([]byte, bool) {
	for _, p := range m.protocols {
		if p.Name == name {
			return p.Metadata, true
		}
	}
	return nil, false
}

// sameProtocols reports whether m offers exactly ps, in this order.
func (m *member) sameProtocols(ps []Protocol) bool {
	if len(ps) != len(m.protocols) {
		return false
	}
	for i, p := range ps {
		if p.Name != m.protocols[i].Name || !bytes.Equal(p.Metadata, m.protocols[i].Metadata) {
			return false
		}
	}
	return true
}

// offered counts the members that offer each protocol.
func (g *Group) offered() map[string]int {
	n := map[string]int{}
	for _, m := range g.order {
		for i, p := range m.protocols {
			if !slices.ContainsFunc(m.protocols[:i], func(q Protocol) bool { return q.Name == p.Name }) {
				n[p.Name]++
			}
		}
	}
	return n
}

// supports reports whether somebody with this type and these protocols may join.
func (g *Group) supports(protocolType string, ps []Protocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(ps) > 0
	}
	if protocolType != g.protocolType {
		return false
	}
	offered := g.offered()
	return slices.ContainsFunc(ps, func(p Protocol) bool { return offered[p.Name] == len(g.order) })
}

// elect chooses the protocol: of those that all members offer, the one that most
// members like best; the earlier vote breaks a tie.
func (g *Group) elect() string {
	votes, offered := map[string]int{}, g.offered()
	best := ""
	for _, m := range g.order {
		for _, p := range m.protocols {
			if offered[p.Name] == len(g.order) {
				votes[p.Name]++
				break
			}
		}
	}
	for _, m := range g.order {
		for _, p := range m.protocols {
			if votes[p.Name] > votes[best] {
				best = p.Name
			}
		}
	}
	return best
}

// topicsOf reads the topics that a consumer's metadata subscribes to; false when
// the bytes are not a consumer's subscription.
func topicsOf(metadata []byte) ([]string, bool) {
	var sub kmsg.ConsumerMemberMetadata
	if err := sub.ReadFrom(metadata); err != nil {
		return nil, false
	}
	return sub.Topics, true
}

// learnTopics recomputes what the members are subscribed to.
func (g *Group) learnTopics() {
	g.subscribed = nil
	if g.protocolType != consumerProtocol {
		return
	}
	all := map[string]bool{}
	for _, m := range g.order {
		metadata, _ := m.offers(g.protocol)
		topics, ok := topicsOf(metadata)
		if !ok {
			return
		}
		for _, t := range topics {
			all[t] = true
		}
	}
	g.subscribed = all
}

// sameSubscription reports whether a member that offered before and now offers
// after still wants the same topics of protocol name. Bytes that are no
// consumer's subscription are compared as they are.
func sameSubscription(before, after []byte) bool {
	a, okA := topicsOf(before)
	b, okB := topicsOf(after)
	if !okA || !okB {
		return bytes.Equal(before, after)
	}
	set := map[string]bool{}
	for _, t := range a {
		set[t] = true
	}
	other := map[string]bool{}
	for _, t := range b {
		if !set[t] {
			return false
		}
		other[t] = true
	}
	return len(set) == len(other)
}

// SubscribedTo reports whether members consume topic; when that cannot be known, true.
func (g *Group) SubscribedTo(topic string) bool {
	if g.subscribed == nil {
		return len(g.members) > 0
	}
	return g.subscribed[topic]
}

// KnowsTopics reports whether SubscribedTo is exact: a consumer group in Stable.
func (g *Group) KnowsTopics() bool {
	return g.state == Stable && g.protocolType == consumerProtocol && g.subscribed != nil
}
