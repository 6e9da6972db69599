package partlog

import (
	"context"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

// stretch is a span, an extent or a block, for look-ups by time.
type stretch struct {
	base, last model.Offset
	maxTs      int64
}

// SearchTime returns the first batch, in offset order, below end whose max
// timestamp is at least ms, starting at Start; nil if there is none.
func (l *Log) SearchTime(ctx context.Context, ms int64, end model.Offset) (model.Batch, error) {
	end = min(end, l.End())
	for from := l.Start(); from < end; {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		s, ok := l.firstStretch(from, func(s stretch) bool { return s.maxTs >= ms })
		if !ok || s.base >= end {
			return nil, nil
		}
		b, err := l.searchIn(ctx, s, max(from, s.base), end, func(maxTs int64) bool { return maxTs >= ms })
		if err != nil || b != nil {
			return b, err
		}
		from = s.last + 1 // what gave the stretch its time lies below Start
	}
	return nil, nil
}

// MaxTimestamp returns the batch below end that holds the largest timestamp (the
// first of them); nil if the log is empty.
func (l *Log) MaxTimestamp(ctx context.Context, end model.Offset) (model.Batch, error) {
	end = min(end, l.End())
	start := l.Start()
	all := slices.DeleteFunc(l.stretches(), func(s stretch) bool { return s.last < start || s.base >= end })
	// Largest claim first. A claim made by batches outside [start, end) may prove
	// too large; then the next ones are looked at as long as they could be larger.
	slices.SortStableFunc(all, func(a, b stretch) int {
		switch {
		case a.maxTs > b.maxTs:
			return -1
		case a.maxTs < b.maxTs:
			return 1
		}
		return int(max(-1, min(1, a.base-b.base)))
	})
	var best model.Batch
	for _, s := range all {
		if best != nil && (s.maxTs < best.MaxTimestamp() || (s.maxTs == best.MaxTimestamp() && s.base > best.BaseOffset())) {
			break
		}
		b, err := l.largestIn(ctx, s, max(start, s.base), end)
		if err != nil {
			return nil, err
		}
		if b != nil && (best == nil || b.MaxTimestamp() > best.MaxTimestamp() ||
			(b.MaxTimestamp() == best.MaxTimestamp() && b.BaseOffset() < best.BaseOffset())) {
			best = b
		}
	}
	return best, nil
}

// stretches lists spans and extents, in offset order.
func (l *Log) stretches() []stretch {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]stretch, 0, len(l.spans)+len(l.extents))
	for _, s := range l.spans {
		all = append(all, stretch{s.base, s.last, s.maxTs})
	}
	for _, e := range l.extents {
		all = append(all, stretch{e.base, e.last, e.maxTs})
	}
	return all
}

// firstStretch finds the first span or extent that reaches to from and suits.
func (l *Log) firstStretch(from model.Offset, suits func(stretch) bool) (stretch, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := l.spanAtLocked(from); i < len(l.spans); i++ {
		if s := (stretch{l.spans[i].base, l.spans[i].last, l.spans[i].maxTs}); suits(s) {
			return s, true
		}
	}
	for i := l.extentAtLocked(from); i < len(l.extents); i++ {
		if e := (stretch{l.extents[i].base, l.extents[i].last, l.extents[i].maxTs}); suits(e) {
			return e, true
		}
	}
	return stretch{}, false
}

// searchIn finds the first batch of s in [from, end) whose max timestamp suits,
// passing over blocks whose own does not.
func (l *Log) searchIn(ctx context.Context, s stretch, from, end model.Offset, suits func(maxTs int64) bool) (model.Batch, error) {
	blocks, err := l.blocksOf(s, from)
	if err != nil {
		return nil, err
	}
	for _, blk := range blocks {
		if blk.last < from || blk.base >= end || !suits(blk.maxTs) {
			continue
		}
		var found model.Batch
		err := l.eachBatch(ctx, max(from, blk.base), min(end, blk.last+1), func(b model.Batch) bool {
			if suits(b.MaxTimestamp()) {
				found = b
			}
			return found == nil
		})
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// largestIn finds the first batch of s in [from, end) with the largest timestamp.
func (l *Log) largestIn(ctx context.Context, s stretch, from, end model.Offset) (model.Batch, error) {
	blocks, err := l.blocksOf(s, from)
	if err != nil {
		return nil, err
	}
	var best model.Batch
	for _, blk := range blocks {
		if blk.last < from || blk.base >= end || (best != nil && blk.maxTs <= best.MaxTimestamp()) {
			continue
		}
		err := l.eachBatch(ctx, max(from, blk.base), min(end, blk.last+1), func(b model.Batch) bool {
			if best == nil || b.MaxTimestamp() > best.MaxTimestamp() {
				best = b
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return best, nil
}

// blocksOf gives the blocks of a stretch, or the stretch itself when it has moved
// to another file since.
func (l *Log) blocksOf(s stretch, from model.Offset) ([]stretch, error) {
	l.mu.Lock()
	i := l.spanAtLocked(from)
	if i == len(l.spans) || l.spans[i].base != s.base || l.spans[i].last != s.last {
		l.mu.Unlock()
		return []stretch{s}, nil
	}
	sp := l.spans[i]
	sp.seg.pin()
	l.mu.Unlock()
	defer sp.seg.unpin()
	blocks, err := l.store.blocks.Get(sp.seg.idx, sp.sec)
	if err != nil {
		return nil, l.damaged(err, from)
	}
	out := make([]stretch, len(blocks))
	for i, b := range blocks {
		out[i] = stretch{b.Base, b.Last, b.MaxTimestamp}
	}
	return out, nil
}

// eachBatch calls f for the batches in [from, end) until it says no.
func (l *Log) eachBatch(ctx context.Context, from, end model.Offset, f func(model.Batch) bool) error {
	for from < end {
		chunk, err := l.Read(ctx, from, end, windowBytes, true)
		if err != nil {
			return err
		}
		for _, data := range chunk.Data {
			for len(data) > 0 {
				b, rest, err := model.NextBatch(data)
				if err != nil {
					return err // Read has checked this
				}
				if !f(b) {
					return nil
				}
				data = rest
			}
		}
		if chunk.Next <= from {
			return nil
		}
		from = chunk.Next
	}
	return nil
}

func blockAt(blocks []index.Block, o model.Offset) int {
	i, _ := slices.BinarySearchFunc(blocks, o, func(b index.Block, o model.Offset) int {
		if b.Last < o {
			return -1
		}
		return 1
	})
	return i
}
