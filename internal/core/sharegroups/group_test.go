package sharegroups

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
)

func topicNamed(name string, partitions int32) Topic {
	t := Topic{Partitions: partitions}
	copy(t.ID[:], name)
	return t
}

// Every partition has a member, every subscriber of a topic has a partition of
// it, nobody has what they did not ask for, and loads differ by one at most.
func TestAssignmentCoversAndIsFair(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		topics := map[string]Topic{}
		var names []string
		for i := range 1 + rng.IntN(4) {
			name := fmt.Sprint("t", i)
			names = append(names, name)
			topics[name] = topicNamed(name, int32(1+rng.IntN(9)))
		}
		members := map[string]*member{}
		for i := range 1 + rng.IntN(12) {
			m := &member{id: fmt.Sprint("m", i)}
			for _, n := range names {
				if rng.IntN(3) > 0 {
					m.topics = append(m.topics, n)
				}
			}
			members[m.id] = m
		}
		target := assign(members, topics)
		for _, n := range names {
			checkTopic(t, seed, n, topics[n], members, target)
		}
	}
}

func checkTopic(t *testing.T, seed uint64, name string, topic Topic, members map[string]*member, target map[string]Assignment) {
	t.Helper()
	owners := map[int32]int{}
	subs, least, most := 0, 1<<30, 0
	for id, m := range members {
		got := target[id][topic.ID]
		if !slices.Contains(m.topics, name) {
			if len(got) > 0 {
				t.Fatalf("seed %d: %s has %s, which it did not ask for", seed, id, name)
			}
			continue
		}
		subs++
		least, most = min(least, len(got)), max(most, len(got))
		for _, p := range got {
			owners[p]++
		}
	}
	if subs == 0 {
		return
	}
	if len(owners) != int(topic.Partitions) || least < 1 || most-least > 1 {
		t.Fatalf("seed %d: %s: %d of %d partitions owned, loads %d to %d", seed, name, len(owners), topic.Partitions, least, most)
	}
}

func TestEpochFollowsMembersAndTopics(t *testing.T) {
	g := newGroup("g")
	topics := map[string]Topic{"a": topicNamed("a", 2)}
	look := func(n string) (Topic, bool) { t, ok := topics[n]; return t, ok }
	g.members["m"] = &member{id: "m", topics: []string{"a", "b"}}
	g.reassign(look)
	if g.epoch != 1 || !g.owns("m", model.PartitionID{Topic: topics["a"].ID, Index: 1}) || g.stale(look) {
		t.Fatalf("epoch %d, target %v", g.epoch, g.target)
	}
	topics["b"] = topicNamed("b", 1)
	if !g.stale(look) {
		t.Fatal("a topic came and nobody noticed")
	}
	g.reassign(look)
	topics["a"] = topicNamed("a", 3)
	if !g.stale(look) {
		t.Fatal("a topic grew and nobody noticed")
	}
	delete(topics, "b")
	g.reassign(look)
	if g.epoch != 3 || len(g.target["m"]) != 1 || len(g.target["m"][topics["a"].ID]) != 3 {
		t.Fatalf("epoch %d, target %v", g.epoch, g.target)
	}
}
