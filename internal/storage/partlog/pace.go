package partlog

import (
	"context"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
)

const (
	// paceBytes is what background work may read or write per second while the
	// journal is busy and is not held up by it.
	paceBytes = 100 << 20
	paceStep  = 1 << 20
)

// pacer is the budget of the background work. The keeper alone uses it.
type pacer struct {
	bytes  int
	since  time.Time
	frames uint64
}

// pace lets background work yield to the journal: it sleeps a little when both
// are at work and the journal does not wait for room.
func (s *Store) pace(ctx context.Context, bytes int) {
	p := &s.keeper.pacer
	if p.bytes += bytes; p.bytes < paceStep {
		return
	}
	frames := s.journal.Stats().Frames
	busy := frames != p.frames && !s.behind()
	spent := time.Since(p.since)
	if want := time.Duration(p.bytes) * time.Second / paceBytes; busy && spent < want {
		select {
		case <-time.After(want - spent):
		case <-ctx.Done():
		}
	}
	p.bytes, p.since, p.frames = 0, time.Now(), frames
}

// yield is pace for work that may be long: when it is settling, sealed journal
// files are settled in between, so that the journal does not grow meanwhile. The
// work must not hold extents of journal files then.
func (s *Store) yield(ctx context.Context, bytes int, settling bool) error {
	k := &s.keeper
	before := k.pacer.bytes
	s.pace(ctx, bytes)
	if turned := k.pacer.bytes < before+bytes; turned && settling && !k.nested {
		k.nested = true
		defer func() { k.nested = false }()
		if err := s.settleAll(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// behind reports that more of the journal waits to be settled than should: the
// background work then takes what it needs.
func (s *Store) behind() bool { return s.keeper.unsettled.Load() > s.o.JournalCap/2 }

// overloadedAt is how many times JournalCap may wait before appends are refused.
const overloadedAt = 4

var errOverloaded = model.Err(model.ClassOverloaded,
	"the disk does not keep up: too much of the journal waits to be moved to segments; retry more slowly")

// overloaded reports that the journal cannot be let grow any further.
func (s *Store) overloaded() bool {
	return s.keeper.unsettled.Load() > overloadedAt*max(s.o.JournalCap, 16*s.o.JournalFileSize)
}
