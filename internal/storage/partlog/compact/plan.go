// Package compact decides what compaction keeps of a log (cleanup.policy=compact;
// KIP-98 for transactions, KIP-534 for delete horizons). It is pure: batches go
// in, batches come out, time is given. Reading, writing and the choice of logs are
// partlog's.
//
// A log is clean up to some offset: below it each key occurs once. A run takes a
// dirty range above that and works in three passes over batches in offset order:
//   - Scan sees the dirty range: which transactions were aborted, and where the
//     range must end because a transaction is undecided or a record too young;
//   - Index sees the range again and notes the newest offset of each key;
//   - Filter sees everything from the log's start and gives what is kept.
//
// What must hold:
//   - a record goes only when a newer record of its key stays, when its
//     transaction was aborted, or when it is a tombstone whose time is over;
//   - nothing at or above the end of the range is changed;
//   - markers are not keyed records: one goes only after all data of its
//     transaction is gone, and after the delete retention;
//   - kept batches keep their offsets, epochs, producers and sequences.
package compact

import (
	"sort"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// Limits say where a run must end.
type Limits struct {
	Clean model.Offset // below this the log is clean
	End   model.Offset // at most here: decided, durable, rolled
	// Young is the time in milliseconds from which on a record is too young
	// (min.compaction.lag.ms); 0 means that none is.
	Young int64
	// MapBytes bounds the memory of the key map.
	MapBytes int
}

// Plan is what the first two passes find out.
type Plan struct {
	limits  Limits
	cut     model.Offset
	open    map[int64]model.Offset // first offset of undecided transactions, by producer
	aborted map[int64][]interval   // decided ones that were aborted, ascending
	keys    *KeyMap
}

// interval is the range of one aborted transaction, marker included.
type interval struct{ first, last model.Offset }

// NewPlan starts a run.
func NewPlan(l Limits) *Plan {
	return &Plan{
		limits: l, cut: l.End, open: make(map[int64]model.Offset),
		aborted: make(map[int64][]interval), keys: NewKeyMap(l.MapBytes),
	}
}

// Cut is the end of the range: the log is clean up to here after the run.
func (p *Plan) Cut() model.Offset { return p.cut }

// Keys is the number of distinct keys in the range.
func (p *Plan) Keys() int { return p.keys.Len() }

// Scan takes the next batch of the dirty range; it reports whether it wants more.
func (p *Plan) Scan(b model.Batch) (more bool, err error) {
	if b.LastOffset() < p.limits.Clean {
		return true, nil
	}
	if b.BaseOffset() >= p.limits.End {
		return false, nil
	}
	if b.LastOffset() >= p.limits.End || p.limits.Young > 0 && b.MaxTimestamp() >= p.limits.Young {
		p.limits.End = b.BaseOffset()
		return false, nil
	}
	id := b.ProducerID()
	switch {
	case b.IsControl():
		m, ok, err := records.ReadMarker(b)
		if err != nil || !ok {
			return err == nil, err
		}
		if first, found := p.open[id]; found && !m.Commit {
			p.aborted[id] = append(p.aborted[id], interval{first, b.LastOffset()})
		}
		delete(p.open, id)
	case b.IsTransactional():
		if _, found := p.open[id]; !found {
			p.open[id] = b.BaseOffset()
		}
	}
	return true, nil
}

// EndScan fixes the range: no transaction in it is undecided.
func (p *Plan) EndScan() {
	p.cut = p.limits.End
	for _, first := range p.open {
		p.cut = min(p.cut, first)
	}
}

// Index takes the next batch of the range in the second pass; it reports whether
// it wants more. When the key map is full, the range ends before b.
func (p *Plan) Index(b model.Batch) (more bool, err error) {
	if b.BaseOffset() >= p.cut {
		return false, nil
	}
	if b.LastOffset() < p.limits.Clean || b.IsControl() || p.isAborted(b) {
		return true, nil
	}
	full := false
	err = eachRecord(b, func(r records.Record) error {
		if r.Key != nil && !full {
			full = !p.keys.Put(r.Key, b.BaseOffset()+model.Offset(r.OffsetDelta))
		}
		return nil
	})
	if full {
		p.cut = b.BaseOffset()
	}
	return !full && err == nil, err
}

// isAborted reports whether b's records were aborted.
func (p *Plan) isAborted(b model.Batch) bool {
	if !b.IsTransactional() {
		return false
	}
	all := p.aborted[b.ProducerID()]
	i := sort.Search(len(all), func(i int) bool { return all[i].last >= b.LastOffset() })
	return i < len(all) && all[i].first <= b.BaseOffset()
}

func eachRecord(b model.Batch, f func(records.Record) error) error {
	r, err := records.Open(b, 0)
	if err != nil {
		return err
	}
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		if err := f(rec); err != nil {
			return err
		}
	}
}
