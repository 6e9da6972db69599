package consumer

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"

	"github.com/daybook-mq/daybook/internal/core/groups/consumer/assignor"
	"github.com/daybook-mq/daybook/internal/model"
)

// Topic is a topic as groups see it.
type Topic struct {
	Name       string
	ID         model.TopicID
	Partitions int32
}

// Topics is what topics there are: an immutable snapshot. Version tells snapshots
// apart.
type Topics struct {
	Version uint64
	byName  map[string]Topic
	byID    map[model.TopicID]string
	names   []string // in order
}

// NewTopics makes a snapshot.
func NewTopics(version uint64, topics []Topic) *Topics {
	ts := &Topics{Version: version, byName: map[string]Topic{}, byID: map[model.TopicID]string{}}
	for _, t := range topics {
		ts.byName[t.Name], ts.byID[t.ID] = t, t.Name
		ts.names = append(ts.names, t.Name)
	}
	slices.Sort(ts.names)
	return ts
}

// Name gives the name of a topic, "" when it is gone.
func (ts *Topics) Name(id model.TopicID) string { return ts.byID[id] }

// pattern compiles a subscription pattern; it has to match the whole name. Internal
// topics are matched too, as Kafka's brokers do.
func pattern(expr string) (*regexp.Regexp, error) { return regexp.Compile(`^(?:` + expr + `)$`) }

// matches caches what patterns match in one version of the topics.
type matches struct {
	version uint64
	by      map[string][]string
}

func (ms *matches) find(ts *Topics, expr string) []string {
	if ms.by == nil || ms.version != ts.Version {
		ms.version, ms.by = ts.Version, map[string][]string{}
	}
	names, ok := ms.by[expr]
	if !ok {
		if re, err := pattern(expr); err == nil {
			for _, name := range ts.names {
				if re.MatchString(name) {
					names = append(names, name)
				}
			}
		}
		ms.by[expr] = names
	}
	return names
}

// topicsOf lists the names that m is subscribed to, in order; some may not exist.
func (g *Group) topicsOf(m *Member, ts *Topics) []string {
	names := m.Topics
	if m.Pattern != "" {
		names = append(slices.Clone(names), g.matches.find(ts, m.Pattern)...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names
}

// wanted gives the topics of m that there are, for the assignor.
func (g *Group) wanted(m *Member, ts *Topics) []assignor.Topic {
	var out []assignor.Topic
	for _, name := range g.topicsOf(m, ts) {
		if t, ok := ts.byName[name]; ok {
			out = append(out, assignor.Topic{ID: t.ID, Partitions: t.Partitions})
		}
	}
	return out
}

// hash sums up the topics that the group consumes; it changes when they do.
func (g *Group) hashTopics(ts *Topics) uint64 {
	names := map[string]bool{}
	for _, m := range g.members {
		for _, name := range g.topicsOf(m, ts) {
			names[name] = true
		}
	}
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t, ok := ts.byName[name]
		if !ok {
			continue
		}
		_, _ = h.Write([]byte(name))
		_, _ = h.Write(t.ID[:])
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(t.Partitions)))
	}
	return h.Sum64()
}
