package sharegroups

import (
	"maps"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

// Topic is a subscribed topic as the assignor needs it.
type Topic struct {
	ID         model.TopicID
	Partitions int32
}

// member is one consumer of a share group.
type member struct {
	id, rack, client, host string
	topics                 []string // subscribed, sorted
	epoch                  int32    // of the assignment that it was told
	previous               int32    // the one before: its answer may have been lost
	deadline               int64    // session end, in milliseconds
	told                   Assignment
}

// Assignment is the partitions of a member, by topic.
type Assignment map[model.TopicID][]int32

// group is the machine of one share group: pure, it is handed time and topics.
//
// Invariants: epoch grows with every change of members, subscriptions or topics;
// target is computed for epoch; every partition of a subscribed topic has at
// least one of the topic's subscribers.
type group struct {
	id      string
	epoch   int32
	members map[string]*member
	topics  map[string]Topic // subscribed topics as target knows them
	target  map[string]Assignment
}

func newGroup(id string) *group {
	return &group{id: id, members: map[string]*member{}, target: map[string]Assignment{}}
}

// state is Kafka's name of the group's state.
func (g *group) state() string {
	if len(g.members) == 0 {
		return "Empty"
	}
	return "Stable"
}

// subscribed lists the topics that anybody subscribes to.
func (g *group) subscribed() []string {
	all := map[string]struct{}{}
	for _, m := range g.members {
		for _, t := range m.topics {
			all[t] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// reassign takes in what changed. look gives a topic by name.
func (g *group) reassign(look func(string) (Topic, bool)) {
	g.epoch++
	g.topics = map[string]Topic{}
	for _, name := range g.subscribed() {
		if t, ok := look(name); ok {
			g.topics[name] = t
		}
	}
	g.target = assign(g.members, g.topics)
}

// stale reports whether a subscribed topic came, went or grew since the target
// was computed.
func (g *group) stale(look func(string) (Topic, bool)) bool {
	found := 0
	for _, name := range g.subscribed() {
		t, ok := look(name)
		if known, had := g.topics[name]; ok != had || t != known {
			return true
		}
		if ok {
			found++
		}
	}
	return found != len(g.topics)
}

// assign spreads each topic over its subscribers: every partition has one at
// least, every subscriber has a partition, and loads differ by one at most per
// topic (the simple assignor of KIP-932).
func assign(members map[string]*member, topics map[string]Topic) map[string]Assignment {
	target := make(map[string]Assignment, len(members))
	ids := slices.Sorted(maps.Keys(members))
	for _, id := range ids {
		target[id] = Assignment{}
	}
	shift := 0 // so that the first members are not the first of every topic
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		var subs []string
		for _, id := range ids {
			if _, ok := slices.BinarySearch(members[id].topics, name); ok {
				subs = append(subs, id)
			}
		}
		if len(subs) == 0 || t.Partitions == 0 {
			continue
		}
		n := max(int(t.Partitions), len(subs))
		for i := range n {
			id := subs[(i+shift)%len(subs)]
			target[id][t.ID] = append(target[id][t.ID], int32(i)%t.Partitions)
		}
		shift += n
	}
	return target
}

// owns reports whether the member's target has the partition.
func (g *group) owns(id string, p model.PartitionID) bool {
	return slices.Contains(g.target[id][p.Topic], p.Index)
}
