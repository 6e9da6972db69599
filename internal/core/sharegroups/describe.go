package sharegroups

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// Description is a look at a group and its members.
type Description struct {
	ID, State       string
	Epoch           int32
	AssignmentEpoch int32
	Members         []MemberDescription
}

// MemberDescription is a look at a member.
type MemberDescription struct {
	ID, Rack, Client, Host string
	Epoch                  int32
	Topics                 []string
	Assignment             Assignment
}

// Describe looks at a group. ErrNoGroup if there is none.
func (c *Coordinator) Describe(groupID string) (Description, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[groupID]
	if g == nil {
		return Description{}, ErrNoGroup
	}
	d := Description{ID: g.id, State: g.state(), Epoch: g.epoch, AssignmentEpoch: g.epoch}
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		d.Members = append(d.Members, MemberDescription{m.id, m.rack, m.client, m.host, m.epoch, m.topics, g.target[id]})
	}
	return d, nil
}

// Listing is a group in a list.
type Listing struct{ ID, State string }

// List lists the share groups by id.
func (c *Coordinator) List() []Listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Listing, 0, len(c.groups))
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		out = append(out, Listing{id, c.groups[id].state()})
	}
	return out
}

// Exists reports whether a share group of that name exists.
func (c *Coordinator) Exists(groupID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[groupID] != nil
}

// emptyLocked gives a group that has no members, ErrNoGroup or ErrNotEmpty.
func (c *Coordinator) emptyLocked(groupID string) (*group, error) {
	g := c.groups[groupID]
	switch {
	case g == nil:
		return nil, ErrNoGroup
	case len(g.members) > 0:
		return nil, ErrNotEmpty
	}
	return g, nil
}

// Delete forgets an empty group and its ledgers, durably.
func (c *Coordinator) Delete(ctx context.Context, groupID string) error {
	c.mu.Lock()
	_, err := c.emptyLocked(groupID)
	if err == nil {
		delete(c.groups, groupID)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.deleteLedgers(ctx, c.keys(groupID))
}

func (c *Coordinator) deleteLedgers(ctx context.Context, keys []ledgers.Key) error {
	return all(ctx, len(keys), func(i int, done func(error)) { c.o.Ledgers.Delete(keys[i], done) })
}

// all starts n things and waits until every one is done.
func all(ctx context.Context, n int, start func(i int, done func(error))) error {
	ch := make(chan error, n)
	for i := range n {
		start(i, func(err error) { ch <- err })
	}
	for range n {
		select {
		case err := <-ch:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Offset is where a group stands on a partition.
type Offset struct {
	Part  model.PartitionID
	Start model.Offset // -1: the group has not begun here
	Lag   int64        // records that are not settled and can be read; -1: unknown
}

// Offsets tells where a group stands, on all of its partitions by topic and index.
func (c *Coordinator) Offsets(groupID string) ([]Offset, error) {
	if !c.Exists(groupID) {
		return nil, ErrNoGroup
	}
	var out []Offset
	for _, key := range c.keys(groupID) {
		s, err := c.open(groupID, key)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		d := s.Describe()
		out = append(out, Offset{key.Part, d.Start, d.ReadyTotal + d.Waiting + d.InFlight + d.Delayed})
	}
	slices.SortFunc(out, func(a, b Offset) int { return a.Part.Compare(b.Part) })
	return out, nil
}

// open gives a ledger of the group that exists; nil if its topic does not.
func (c *Coordinator) open(groupID string, key ledgers.Key) (*ledgers.Subscription, error) {
	t, ok := c.o.Topics.ByID(key.Part.Topic)
	if !ok {
		return nil, nil
	}
	return c.Subscription(context.Background(), groupID, t, key.Part.Index)
}

// Ledgers gives the group's ledgers, opened if need be.
func (c *Coordinator) Ledgers(groupID string) (out []*ledgers.Subscription, err error) {
	for _, key := range c.keys(groupID) {
		s, err := c.open(groupID, key)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, s)
		}
	}
	return out, nil
}

// AlterOffset makes an empty group begin anew at an offset of one partition.
func (c *Coordinator) AlterOffset(ctx context.Context, groupID string, t *topics.Topic, index int32, start model.Offset) error {
	c.mu.Lock()
	g := c.groups[groupID]
	if g == nil { // as Kafka does, resetting makes the group
		g = newGroup(groupID)
		c.groups[groupID] = g
	}
	_, err := c.emptyLocked(groupID)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	p, ok := t.Partition(index)
	if !ok {
		return model.Err(model.ClassNotFound, "the partition does not exist")
	}
	w := p.Watermarks()
	start = min(max(start, w.LogStart), w.HighWatermark)
	s, err := c.Subscription(ctx, groupID, t, index)
	if err != nil {
		return err
	}
	return all(ctx, 1, func(_ int, done func(error)) { s.Reset(start, done) })
}

// DeleteOffsets forgets where an empty group stands on a topic.
func (c *Coordinator) DeleteOffsets(ctx context.Context, groupID string, topic model.TopicID) error {
	c.mu.Lock()
	_, err := c.emptyLocked(groupID)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	keys := slices.DeleteFunc(c.keys(groupID), func(k ledgers.Key) bool { return k.Part.Topic != topic })
	return c.deleteLedgers(ctx, keys)
}

// Stats is what one group's ledgers hold, over the partitions that were used since
// the start, and how many members it has.
type Stats struct {
	Group                                   string
	Members                                 int
	Ready, Waiting, InFlight, Delayed, Dead int64
}

// Stats counts, for metrics.
func (c *Coordinator) Stats() []Stats {
	byGroup := map[string]*Stats{}
	c.mu.Lock()
	for id, g := range c.groups {
		byGroup[id] = &Stats{Group: id, Members: len(g.members)}
	}
	c.mu.Unlock()
	for _, key := range c.o.Ledgers.Keys() {
		s, ok := c.o.Ledgers.Get(key)
		st := byGroup[strings.TrimPrefix(key.Owner, owner)]
		if !ok || st == nil || !strings.HasPrefix(key.Owner, owner) {
			continue
		}
		d := s.Describe()
		st.Ready += d.ReadyTotal
		st.Waiting += d.Waiting
		st.InFlight += d.InFlight
		st.Delayed += d.Delayed
		st.Dead += d.Dead
	}
	out := make([]Stats, 0, len(byGroup))
	for _, id := range slices.Sorted(maps.Keys(byGroup)) {
		out = append(out, *byGroup[id])
	}
	return out
}
