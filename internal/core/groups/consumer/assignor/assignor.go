// Package assignor decides which member of a consumer group gets which partition
// (KIP-848's server-side assignors). It is pure: the same input gives the same
// assignment.
package assignor

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

// Topic is what can be assigned of one topic: partitions 0 to Partitions-1.
type Topic struct {
	ID         model.TopicID
	Partitions int32
}

// Member is one consumer: what it wants and what it was to have before.
type Member struct {
	ID       string
	Instance string // "": none
	Topics   []Topic
	Before   map[model.TopicID][]int32
}

// Assignment is the partitions of each member, by member id and topic, ascending.
type Assignment map[string]map[model.TopicID][]int32

// The names by which clients ask for an assignor.
const (
	Uniform = "uniform"
	Range   = "range"
)

// Names lists the assignors, the default first.
func Names() []string { return []string{Uniform, Range} }

// Assign runs the assignor with this name.
func Assign(name string, members []Member) Assignment {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.key(), b.key()) })
	if name == Range {
		return byRange(members)
	}
	return uniform(members)
}

// key orders members: a static member keeps its place when it restarts.
func (m *Member) key() string { return cmp.Or(m.Instance, m.ID) }

// subscribers lists the topics, by id, with the members that want them.
func subscribers(members []Member) (topics []Topic, by map[model.TopicID][]int) {
	by = map[model.TopicID][]int{}
	for i, m := range members {
		for _, t := range m.Topics {
			if by[t.ID] == nil {
				topics = append(topics, t)
			}
			by[t.ID] = append(by[t.ID], i)
		}
	}
	slices.SortFunc(topics, func(a, b Topic) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return topics, by
}

func empty(members []Member) Assignment {
	as := Assignment{}
	for _, m := range members {
		as[m.ID] = map[model.TopicID][]int32{}
	}
	return as
}

// byRange gives each member a run of consecutive partitions of each topic, so that
// topics with equal partitions and subscribers are co-partitioned.
func byRange(members []Member) Assignment {
	as := empty(members)
	topics, by := subscribers(members)
	for _, t := range topics {
		next := int32(0)
		n := int32(len(by[t.ID]))
		for place, i := range by[t.ID] {
			count := t.Partitions / n
			if int32(place) < t.Partitions%n {
				count++
			}
			for ; count > 0; count-- {
				as[members[i].ID][t.ID] = append(as[members[i].ID][t.ID], next)
				next++
			}
		}
	}
	return as
}

// load is a member with how many partitions it has so far.
type load struct {
	member, n int
}

// uniform gives every member as many partitions as any other that could have
// them, to within one, and moves as few as that takes.
func uniform(members []Member) Assignment {
	u := &spread{members: members, as: empty(members), loads: make([]int, len(members))}
	topics, by := subscribers(members)
	free := make([][]int32, len(topics))
	for k, t := range topics {
		free[k] = u.keep(t, by[t.ID])
	}
	for k, t := range topics {
		u.fill(t, by[t.ID], free[k])
	}
	for u.level(topics, by) { // each step moves from more to fewer, so this ends
	}
	for _, m := range u.as {
		for _, ps := range m {
			slices.Sort(ps)
		}
	}
	return u.as
}

// spread is an assignment in the making.
type spread struct {
	members []Member
	as      Assignment
	loads   []int // by member
}

func (u *spread) give(i int, t model.TopicID, p int32) {
	m := u.as[u.members[i].ID]
	m[t] = append(m[t], p)
	u.loads[i]++
}

// keep leaves partitions with who had them and returns the free ones. Of two who
// had the same, the first keeps it.
func (u *spread) keep(t Topic, subs []int) (free []int32) {
	taken := make([]bool, t.Partitions)
	for _, i := range subs {
		for _, p := range u.members[i].Before[t.ID] {
			if p >= 0 && p < t.Partitions && !taken[p] {
				taken[p] = true
				u.give(i, t.ID, p)
			}
		}
	}
	for p := range t.Partitions {
		if !taken[p] {
			free = append(free, p)
		}
	}
	return free
}

// fill gives free partitions to the least loaded subscribers.
func (u *spread) fill(t Topic, subs []int, free []int32) {
	if len(free) == 0 {
		return
	}
	h := make(loads, 0, len(subs))
	for _, i := range subs {
		h = append(h, load{i, u.loads[i]})
	}
	heap.Init(&h)
	for _, p := range free {
		u.give(h[0].member, t.ID, p)
		h[0].n++
		heap.Fix(&h, 0)
	}
}

// level moves one partition to somebody with at least two fewer, from who has the
// most; false when there is none to move. Who has the most goes first, so that
// members that have no more than their share keep what they have.
func (u *spread) level(topics []Topic, by map[model.TopicID][]int) bool {
	least := make([]int, len(topics)) // the least loaded subscriber of each topic
	for k, t := range topics {
		least[k] = slices.MinFunc(by[t.ID], func(a, b int) int {
			return cmp.Or(cmp.Compare(u.loads[a], u.loads[b]), cmp.Compare(a, b))
		})
	}
	for _, from := range u.byLoad() {
		has := u.as[u.members[from].ID]
		for k, t := range topics {
			if len(has[t.ID]) > 0 && u.loads[from]-u.loads[least[k]] >= 2 {
				u.move(t.ID, from, least[k])
				return true
			}
		}
	}
	return false
}

// byLoad lists the members, the most loaded first.
func (u *spread) byLoad() []int {
	order := make([]int, len(u.members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(u.loads[b], u.loads[a]) })
	return order
}

func (u *spread) move(t model.TopicID, from, to int) {
	has := u.as[u.members[from].ID]
	last := len(has[t]) - 1
	u.give(to, t, has[t][last])
	u.loads[from]--
	if has[t] = has[t][:last]; last == 0 {
		delete(has, t)
	}
}

// loads is a heap of the least loaded member first; the order of members breaks ties.
type loads []load

func (h loads) Len() int { return len(h) }
func (h loads) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].n, h[j].n), cmp.Compare(h[i].member, h[j].member)) < 0
}
func (h loads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *loads) Push(x any)   { *h = append(*h, x.(load)) }
func (h *loads) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// Known reports whether there is an assignor with this name.
func Known(name string) bool { return slices.Contains(Names(), name) }

// Prefer picks the assignor that most members ask for; the default if none does.
func Prefer(asked []string) string {
	votes := map[string]int{}
	for _, name := range asked {
		if Known(name) {
			votes[name]++
		}
	}
	best := Uniform
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}
