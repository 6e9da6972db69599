package groups

import (
	"log/slog"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// shard is one partition of the internal topic and the groups in it.
type shard struct {
	// immutable
	c   *Coordinator
	log *statelog.Log
	// unread is why the partition could not be read back; set before the first request.
	unread error

	mu     sync.RWMutex
	groups map[string]*group
	txns   map[int64]map[*group]bool // groups with staged offsets, by producer id
}

func newShard(c *Coordinator, p *partition.Partition) *shard {
	return &shard{
		c: c, log: statelog.New(p, c.opts.Now),
		groups: map[string]*group{}, txns: map[int64]map[*group]bool{},
	}
}

func (s *shard) find(id string) *group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups[id]
}

func (s *shard) findOrMake(id string, now time.Time) *group {
	if g := s.find(id); g != nil {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[id]
	if g == nil {
		g = &group{id: id, shard: s, classic: classic.New(id, now)}
		s.groups[id] = g
	}
	return g
}

func (s *shard) appendAll(gs []*group) []*group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, g := range s.groups {
		gs = append(gs, g)
	}
	return gs
}

// group is one group with its lock.
type group struct {
	// immutable
	id    string
	shard *shard

	due   time.Time // under timers.mu
	index int       // under timers.mu: place in the heap, from 1

	mu       sync.Mutex
	classic  *classic.Group  // one of the two is set
	consumer *consumer.Group // nil: a group of the classic protocol
	offsets  offsets.Store
	tickets  classic.Ticket
	joins    map[classic.Ticket]func(classic.JoinReply)
	syncs    map[classic.Ticket]func(classic.SyncReply)
	image    *classic.Saved // of classic, as it was last appended
	gone     bool
}

// answers are calls to make once the lock is released.
type answers []func()

func (as answers) give() {
	for _, f := range as {
		f()
	}
}

// with runs f under the lock of the group, which is made when make says so. It
// returns false when there is no such group. f's answers are given after the lock
// is released; a group that f leaves idle is forgotten.
func (c *Coordinator) with(id string, create bool, f func(g *group, now time.Time) answers) bool {
	s := c.shardOf(id)
	for {
		now := c.opts.Now()
		g := s.find(id)
		if g == nil {
			if !create {
				return false
			}
			g = s.findOrMake(id, now)
		}
		if g.do(now, f) {
			return true
		}
	}
}

// do is with for a group that is known; false when it is gone.
func (g *group) do(now time.Time, f func(g *group, now time.Time) answers) bool {
	g.mu.Lock()
	if g.gone {
		g.mu.Unlock()
		return false
	}
	as := f(g, now)
	g.settleLocked()
	g.mu.Unlock()
	as.give()
	return true
}

// settleLocked forgets an idle group, or tells the timer when it is due.
func (g *group) settleLocked() {
	if g.gone {
		return
	}
	if g.idleLocked() && g.offsets.Empty() {
		g.forgetLocked()
		return
	}
	g.shard.c.timers.set(g, g.wakeLocked())
}

// forgetLocked takes the group out of its shard.
func (g *group) forgetLocked() {
	g.gone = true
	s := g.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[g.id] == g {
		delete(s.groups, g.id)
	}
}

// effectsLocked carries out what the machine decided.
func (g *group) effectsLocked(fx classic.Effects) answers {
	var as answers
	for _, r := range fx.Joins {
		if f := g.joins[r.To]; f != nil {
			delete(g.joins, r.To)
			as = append(as, func() { f(r) })
		}
	}
	for _, r := range fx.Syncs {
		if f := g.syncs[r.To]; f != nil {
			delete(g.syncs, r.To)
			as = append(as, func() { f(r) })
		}
	}
	g.shard.c.report(g.id, fx)
	if fx.Save != nil {
		as = append(as, g.storeLocked(*fx.Save)...)
	}
	return as
}

// storeLocked appends the group's image and tells the machine when it is durable.
func (g *group) storeLocked(s classic.Saved) answers {
	c, m := g.shard.c, g.classic
	err := g.shard.log.Append([]statelog.Record{codec.Group(g.id, s)}, func(err error) {
		if err != nil {
			c.opts.Log.Error("group state not stored", slog.String("group", g.id), slog.Any("err", err))
		}
		g.do(c.opts.Now(), func(g *group, now time.Time) answers {
			if g.classic != m {
				return nil // it has migrated to another protocol
			}
			return g.effectsLocked(m.Stored(now, s.Number, err == nil))
		})
	})
	if err == nil {
		g.image = &s
		return nil
	}
	c.opts.Log.Warn("group state refused", slog.String("group", g.id), slog.Any("err", err))
	return g.effectsLocked(m.Stored(c.opts.Now(), s.Number, false))
}

// stop answers whoever waits in the group.
func (g *group) stop(now time.Time) {
	g.mu.Lock()
	var as answers
	if g.classic != nil {
		as = g.effectsLocked(g.classic.Kill(now, refusal.CoordinatorNotAvailable))
	}
	g.gone = true
	g.mu.Unlock()
	as.give()
}

func (g *group) ticketLocked() classic.Ticket {
	g.tickets++
	return g.tickets
}
