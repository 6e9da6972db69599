package groups

import (
	"log/slog"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
)

// stats counts what groups went through.
type stats struct {
	mu         sync.Mutex
	rebalances map[classic.Cause]int64
	departures map[classic.Cause]int64
}

// report logs and counts what a machine has done.
func (c *Coordinator) report(id string, fx classic.Effects) {
	c.reportEvents(id, fx.Started, fx.Gone)
	if s := fx.Settled; s != nil {
		c.opts.Log.Info("group stable",
			slog.String("group", id), slog.Int("generation", int(s.Generation)), slog.Int("members", s.Members))
	}
}

// reportEvents logs and counts rebalances and departures.
func (c *Coordinator) reportEvents(id string, started []classic.Rebalance, gone []classic.Departure) {
	for _, r := range started {
		c.count(&c.stats.rebalances, r.Cause)
		c.opts.Log.Info("group rebalance",
			slog.String("group", id), slog.String("cause", string(r.Cause)), slog.Int("generation", int(r.Generation)),
			slog.Int("members", r.Members), slog.String("member", r.MemberID), slog.String("instance", r.InstanceID),
			slog.String("client", r.ClientID), slog.String("host", r.ClientHost), slog.String("why", r.Why))
	}
	for _, d := range gone {
		c.count(&c.stats.departures, d.Cause)
		c.opts.Log.Info("group member gone",
			slog.String("group", id), slog.String("cause", string(d.Cause)), slog.String("member", d.MemberID),
			slog.String("instance", d.InstanceID), slog.String("client", d.ClientID),
			slog.String("host", d.ClientHost), slog.String("why", d.Why))
	}
}

func (c *Coordinator) count(m *map[classic.Cause]int64, cause classic.Cause) {
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	if *m == nil {
		*m = map[classic.Cause]int64{}
	}
	(*m)[cause]++
}

// Stats is a look at all groups, for metrics.
type Stats struct {
	GroupsByState map[string]int
	Members       int
	Offsets       int
	Rebalances    map[string]int64 // since the start, by cause
	Departures    map[string]int64 // since the start, by cause
}

// Stats counts; it looks at every group.
func (c *Coordinator) Stats() Stats {
	s := Stats{GroupsByState: map[string]int{}, Rebalances: map[string]int64{}, Departures: map[string]int64{}}
	for _, g := range c.all() {
		g.do(c.opts.Now(), func(g *group, _ time.Time) answers {
			s.GroupsByState[g.listedLocked().State]++
			s.Members += g.sizeLocked()
			s.Offsets += g.offsets.Len()
			return nil
		})
	}
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	for k, n := range c.stats.rebalances {
		s.Rebalances[string(k)] = n
	}
	for k, n := range c.stats.departures {
		s.Departures[string(k)] = n
	}
	return s
}

// Debug is the whole of one group, for /debug/group.
type Debug struct {
	ID        string
	Partition int32 // of the internal topic
	Type      string
	Group     any // a classic.Description or a consumer.Description
	Offsets   []offsets.Commit
	Unstable  []offsets.Key `json:",omitempty"`
}

// Debug shows one group; false when there is none.
func (c *Coordinator) Debug(id string) (d Debug, ok bool) {
	ok = c.with(id, false, func(g *group, _ time.Time) answers {
		d = Debug{ID: id, Partition: c.PartitionFor(id), Type: g.listedLocked().Type, Group: g.describeLocked()}
		g.offsets.Each(func(cm offsets.Commit) { d.Offsets = append(d.Offsets, cm) })
		for _, k := range g.offsets.Keys("") {
			if g.offsets.Unstable(k) {
				d.Unstable = append(d.Unstable, k)
			}
		}
		return nil
	})
	return d, ok
}
