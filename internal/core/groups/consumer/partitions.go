package consumer

import (
	"maps"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

// Partitions is a set of partitions: for each topic id its indexes, ascending, and
// no topic without any. Sets are not changed once they are made.
type Partitions map[model.TopicID][]int32

// Clean makes a set of what a client or an assignor gives.
func Clean(m map[model.TopicID][]int32) Partitions {
	out := Partitions{}
	for id, ps := range m {
		if len(ps) > 0 {
			ps = slices.Clone(ps)
			slices.Sort(ps)
			out[id] = slices.Compact(ps)
		}
	}
	return out
}

func (a Partitions) has(id model.TopicID, p int32) bool {
	_, ok := slices.BinarySearch(a[id], p)
	return ok
}

// filter gives the partitions for which keep says yes.
func (a Partitions) filter(keep func(model.TopicID, int32) bool) Partitions {
	out := Partitions{}
	for id, ps := range a {
		for _, p := range ps {
			if keep(id, p) {
				out[id] = append(out[id], p)
			}
		}
	}
	return out
}

func (a Partitions) and(b Partitions) Partitions { return a.filter(b.has) }

func (a Partitions) without(b Partitions) Partitions {
	return a.filter(func(id model.TopicID, p int32) bool { return !b.has(id, p) })
}

func (a Partitions) plus(b Partitions) Partitions {
	out := map[model.TopicID][]int32{}
	for id, ps := range a {
		out[id] = slices.Clone(ps)
	}
	for id, ps := range b {
		out[id] = append(out[id], ps...)
	}
	return Clean(out)
}

func (a Partitions) equal(b Partitions) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]int32])
}

// within reports whether every partition of a is in b.
func (a Partitions) within(b Partitions) bool { return len(a.without(b)) == 0 }

// Topics lists the topic ids in order.
func (a Partitions) Topics() []model.TopicID {
	return slices.SortedFunc(maps.Keys(a), func(x, y model.TopicID) int { return slices.Compare(x[:], y[:]) })
}

// slot is one partition, as a map key.
type slot struct {
	topic model.TopicID
	index int32
}
