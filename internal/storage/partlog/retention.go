package partlog

import (
	"context"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/journal"
)

const (
	// trimsPerGroup bounds the append group of one sweep.
	trimsPerGroup = 1000
	// shortInterval is the time between sweeps while the disk is short of room.
	shortInterval = 10 * time.Second
)

// unit is what retention takes or leaves as a whole: a span, or what the log has
// in one journal file.
type unit struct {
	last  model.Offset
	maxTs int64
	bytes int64
}

// unitsLocked lists the log's units, oldest first.
func (l *Log) unitsLocked() []unit {
	units := make([]unit, 0, len(l.spans)+4)
	for _, s := range l.spans {
		units = append(units, unit{s.last, s.maxTs, s.bytes})
	}
	var in *journalFile
	for _, e := range l.extents {
		if e.in != in {
			in = e.in
			units = append(units, unit{maxTs: -1})
		}
		u := &units[len(units)-1]
		u.last, u.maxTs, u.bytes = e.last, max(u.maxTs, e.maxTs), u.bytes+int64(e.size)
	}
	return units
}

// expired says up to where the policy lets go of the units, oldest first: those
// whose newest record is too old (Kafka's retention.ms; batches without a time
// never are), and those without which retention.bytes are still there. The newest
// unit goes by time only.
func expired(units []unit, p Policy, now time.Time) (upTo model.Offset, any bool) {
	if !p.Delete {
		return 0, false
	}
	var total int64
	for _, u := range units {
		total += u.bytes
	}
	for i, u := range units {
		old := p.RetentionTime > 0 && u.maxTs >= 0 && u.maxTs < now.Add(-p.RetentionTime).UnixMilli()
		spare := p.RetentionBytes > 0 && total-u.bytes >= p.RetentionBytes && i < len(units)-1
		if !old && !spare {
			break
		}
		upTo, any = u.last+1, true
		total -= u.bytes
	}
	return upTo, any
}

// retentionDue decides whether to sweep now.
func (s *Store) retentionDue() bool {
	interval := s.o.RetentionInterval
	if s.journal.SpaceState() != journal.SpaceOK {
		interval = min(interval, shortInterval)
	}
	return s.keeper.sweep.Swap(false) || s.o.Clock().Sub(s.keeper.retention) >= interval
}

// Sweep runs retention soon, without waiting for its interval.
func (s *Store) Sweep() {
	s.keeper.sweep.Store(true)
	s.keeper.signal()
}

// onSpace is told by the journal that the disk's free space crossed a limit.
func (s *Store) onSpace(state journal.SpaceState) {
	if state != journal.SpaceOK {
		s.Sweep()
	}
	s.o.OnSpace(state)
}

// retain moves the starts of logs past what their policies let go of. The moves
// are durable before anything is deleted: a start never goes back.
func (s *Store) retain(ctx context.Context) error {
	now := s.o.Clock()
	s.keeper.retention = now
	var g *storage.Group
	for _, l := range s.all() {
		l.mu.Lock()
		o, any := expired(l.unitsLocked(), l.policy, now)
		any = any && o > l.Start() && !l.dropped
		l.mu.Unlock()
		if !any {
			continue
		}
		if g == nil {
			g = &storage.Group{Essential: true, Done: func(model.LSN, error) {}}
		}
		g.Entries = append(g.Entries, storage.Entry{Kind: storage.EntryTrim, Part: l.id, Base: o, Last: o, MaxTimestamp: -1})
		s.stats.expiredLogs.Add(1)
		if len(g.Entries) == trimsPerGroup {
			if err := s.Append(g); err != nil {
				return err
			}
			g = nil
		}
	}
	if g != nil {
		if err := s.Append(g); err != nil {
			return err
		}
	}
	// A journal that fails now says so through OnFatal.
	return s.journal.Barrier(ctx)
}
