// Package sharegroups is the coordinator of Kafka's share groups (KIP-932): who
// is a member, which partitions each member may fetch from, and the ledgers that
// the group has over them. What is delivered and settled is the ledgers' business
// (core/ledgers); this package knows members, settings and dead-letter topics.
//
// Membership is a session: it lives in memory, and after a restart members join
// again by themselves. What a group is owed is in its ledgers, which are durable.
package sharegroups

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// owner begins the names of share groups' ledgers.
const owner = "share/"

// Options configure the coordinator.
type Options struct {
	Topics  *topics.Catalogue
	Ledgers *ledgers.Keeper
	// Taken says whether a group id belongs to a group of another kind.
	Taken func(group string) bool
	Now   func() time.Time
	Log   *slog.Logger
}

// Coordinator holds all share groups. Its methods may be called from any goroutine.
type Coordinator struct {
	o    Options
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	groups map[string]*group
}

// Open finds the groups that have ledgers and starts the session timer; Close joins it.
func Open(ctx context.Context, o Options) *Coordinator {
	c := &Coordinator{o: o, groups: map[string]*group{}}
	for _, key := range o.Ledgers.Keys() {
		if id, ok := strings.CutPrefix(key.Owner, owner); ok && c.groups[id] == nil {
			c.groups[id] = newGroup(id)
		}
	}
	o.Topics.Watch(c.changed)
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.done.Go(func() { c.run(ctx) })
	return c
}

// Close stops the timer.
func (c *Coordinator) Close() {
	c.stop()
	c.done.Wait()
}

func (c *Coordinator) expire(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		for _, m := range g.members {
			if m.deadline <= now {
				c.removeLocked(g, m, "session timeout")
			}
		}
	}
}

func (c *Coordinator) look(name string) (Topic, bool) {
	t, ok := c.o.Topics.ByName(name)
	if !ok {
		return Topic{}, false
	}
	return Topic{t.ID, int32(len(t.Partitions))}, true
}

// Heartbeat is what a member says.
type Heartbeat struct {
	Group, Member      string
	Epoch              int32 // 0 joins, -1 leaves
	Rack, Client, Host string
	Topics             []string // nil: as before
}

// Answer is what a member is told. Assignment is nil where it did not change.
type Answer struct {
	Epoch      int32
	Interval   time.Duration
	Assignment Assignment
}

// The refusals of a heartbeat, beside ClassInvalid.
var (
	ErrUnknownMember = model.Err(model.ClassNotFound, "the member is not known in this group; join with epoch 0")
	ErrFencedEpoch   = model.Err(model.ClassFenced, "the member's epoch is not the one it was told; join again with epoch 0")
	ErrOtherKind     = model.Err(model.ClassPolicy, "a group of this name and another type exists; choose another name, or delete that group")
	ErrGroupFull     = model.Err(model.ClassOverloaded, "the group has as many members as group.share.max.size allows")
	ErrNoGroup       = model.Err(model.ClassNotFound, "the group does not exist")
	ErrNotEmpty      = model.Err(model.ClassExists, "the group has members; stop them first")
)

// Heartbeat lets a member join, stay or leave (ShareGroupHeartbeat).
func (c *Coordinator) Heartbeat(h Heartbeat) (Answer, error) {
	switch {
	case h.Group == "" || h.Member == "":
		return Answer{}, model.Err(model.ClassInvalid, "a heartbeat needs a group id and a member id")
	case h.Epoch < -1:
		return Answer{}, model.Err(model.ClassInvalid, fmt.Sprintf("member epoch %d is neither -1, 0 nor one that was told", h.Epoch))
	case h.Epoch == 0 && len(h.Topics) == 0:
		return Answer{}, model.Err(model.ClassInvalid, "the first heartbeat must name the subscribed topics")
	case c.o.Taken != nil && c.o.Taken(h.Group):
		return Answer{}, ErrOtherKind
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[h.Group]
	if g == nil {
		if h.Epoch != 0 {
			return Answer{}, ErrUnknownMember
		}
		g = newGroup(h.Group)
		c.groups[h.Group] = g
	}
	m := g.members[h.Member]
	switch {
	case h.Epoch == -1:
		if m == nil {
			return Answer{}, ErrUnknownMember
		}
		c.removeLocked(g, m, "member left")
		return Answer{Epoch: -1}, nil
	case h.Epoch > 0 && m == nil:
		return Answer{}, ErrUnknownMember
	case h.Epoch > 0 && h.Epoch != m.epoch && h.Epoch != m.previous:
		return Answer{}, ErrFencedEpoch
	case m == nil && len(g.members) >= int(c.o.Topics.SettingInt("group.share.max.size")):
		return Answer{}, ErrGroupFull
	}
	return c.stayLocked(g, m, h), nil
}

func (c *Coordinator) stayLocked(g *group, m *member, h Heartbeat) Answer {
	changed := false
	if m == nil {
		m = &member{id: h.Member}
		g.members[h.Member] = m
		changed = true
	}
	m.client, m.host = h.Client, h.Host
	if h.Rack != "" {
		m.rack = h.Rack
	}
	if h.Topics != nil {
		topics := slices.Compact(slices.Sorted(slices.Values(h.Topics)))
		changed = changed || !slices.Equal(topics, m.topics)
		m.topics = topics
	}
	if changed || g.stale(c.look) {
		g.reassign(c.look)
		if changed {
			c.o.Log.Info("share group changed", "group", g.id, "epoch", g.epoch, "member", m.id, "members", len(g.members))
		}
	}
	m.deadline = c.o.Now().UnixMilli() + c.o.Topics.GroupSettingInt(g.id, "share.session.timeout.ms")
	a := Answer{Epoch: g.epoch, Interval: time.Duration(c.o.Topics.GroupSettingInt(g.id, "share.heartbeat.interval.ms")) * time.Millisecond}
	target := g.target[m.id]
	if h.Epoch == 0 || h.Epoch != g.epoch || !maps.EqualFunc(m.told, target, slices.Equal) {
		a.Assignment = target
		m.told = target
	}
	if m.epoch != g.epoch {
		m.previous, m.epoch = m.epoch, g.epoch
	}
	return a
}

// removeLocked takes a member out; what it holds comes back.
func (c *Coordinator) removeLocked(g *group, m *member, why string) {
	delete(g.members, m.id)
	g.reassign(c.look)
	c.o.Log.Info("share group member gone", "group", g.id, "epoch", g.epoch, "member", m.id, "why", why, "members", len(g.members))
	c.release(g.id, m.id)
}

// release gives back what a member holds in all of its group's ledgers.
func (c *Coordinator) release(groupID, memberID string) {
	for _, key := range c.keys(groupID) {
		if s, ok := c.o.Ledgers.Get(key); ok {
			s.Leave(memberID, func(error) {})
		}
	}
}

// Release is release for a session that ended while its member may live on.
func (c *Coordinator) Release(groupID, memberID string) { c.release(groupID, memberID) }

func (c *Coordinator) keys(groupID string) []ledgers.Key {
	return slices.DeleteFunc(c.o.Ledgers.Keys(), func(k ledgers.Key) bool { return k.Owner != owner+groupID })
}

// changed follows the catalogue: settings of groups act at once, and the ledgers
// over deleted topics go.
func (c *Coordinator) changed(ch topics.Change) {
	switch {
	case ch.Group != "":
		c.refresh(ch.Group)
	case ch.Broker:
		for _, g := range c.List() {
			c.refresh(g.ID)
		}
	case ch.Deleted != nil:
		for _, key := range c.o.Ledgers.Keys() {
			if key.Part.Topic == ch.Deleted.ID && strings.HasPrefix(key.Owner, owner) {
				c.o.Ledgers.Delete(key, func(error) {})
			}
		}
	}
}
