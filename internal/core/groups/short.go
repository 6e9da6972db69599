package groups

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// A start reads the whole log back, so its length is bounded here, whatever the
// store's compaction does: when most of a partition is out of date, what its groups
// come to is written again at the end, and the log is cut off before that.

const (
	shortInterval = time.Minute
	// A log is too long with this many records for each that counts, and at all.
	shortFactor = 4
	shortFloor  = 50_000
	// How long a group with an open transaction is waited for.
	rewriteTries = 50
	rewritePause = 20 * time.Millisecond
)

// errBusy: a group had a transaction open all the time; the next round tries again.
var errBusy = errors.New("a transaction was open in a group all the time")

// shorten rewrites and cuts the log if it has at least floor records and most of
// them are out of date.
func (s *shard) shorten(ctx context.Context, floor int) error {
	p := s.log.Partition()
	w := p.Watermarks()
	if n := int(w.HighWatermark - w.LogStart); n < floor || n < shortFactor*s.live() {
		return nil
	}
	// What is durable now lies before the cut, and is written again for each group
	// under its lock. What is on its way lies behind the cut, before or behind what
	// is written again, as its group decided it before or after.
	gs := s.appendAll(nil)
	stored := make(chan error, len(gs))
	appended := 0
	for _, g := range gs {
		ok, err := g.rewriteSoon(ctx, func(err error) { stored <- err })
		if err != nil {
			return err
		}
		if ok {
			appended++
		}
	}
	for range appended { // the store answers every append
		if err := <-stored; err != nil {
			return err
		}
	}
	_, err := p.DeleteRecords(ctx, w.HighWatermark)
	return err
}

// live counts the records that count.
func (s *shard) live() int {
	n := 0
	for _, g := range s.appendAll(nil) {
		g.mu.Lock()
		n += 1 + 3*g.sizeLocked() + g.offsets.Len()
		g.mu.Unlock()
	}
	return n
}

// rewriteSoon waits for a moment without an open transaction: what one has staged
// must stay behind the offsets before it. It reports whether anything was appended.
func (g *group) rewriteSoon(ctx context.Context, done func(error)) (bool, error) {
	for range rewriteTries {
		appended, ok, err := g.rewrite(done)
		if ok || err != nil {
			return appended, err
		}
		if err := pause(ctx, rewritePause); err != nil {
			return false, err
		}
	}
	return false, errBusy
}

// rewrite appends what the group comes to; not ok while a transaction is open.
func (g *group) rewrite(done func(error)) (appended, ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return false, true, nil // its tombstones lie behind the cut
	}
	var rs []statelog.Record
	if !g.offsets.Settled(func(cm offsets.Commit) { rs = append(rs, codec.Offset(g.id, cm)) }) {
		return false, false, nil
	}
	switch {
	case g.consumer != nil:
		rs = append(rs, g.records(g.consumer.Sum())...)
	case g.image != nil:
		rs = append(rs, codec.Group(g.id, *g.image))
	}
	if len(rs) == 0 {
		return false, true, nil
	}
	err = g.shard.log.Append(rs, done)
	return err == nil, err == nil, err
}
