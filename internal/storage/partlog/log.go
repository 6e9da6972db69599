package partlog

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
)

// Log is one partition's log. All methods may be called from any goroutine.
//
// Invariants, under mu:
//   - spans, then extents, are in offset order and tile the log: each begins where
//     the one before ends; holes are damage and listed there;
//   - start <= end; nothing that ends below start is kept;
//   - an extent or span that is listed keeps its file from being retired.
type Log struct {
	// immutable
	id    model.PartitionID
	store *Store

	// atomic, written under mu
	start, end atomic.Int64
	size       atomic.Int64

	mu          sync.Mutex
	spans       []span
	extents     []extent
	damage      []damage
	dropped     bool
	policy      Policy
	snapshotter Snapshotter
	onStart     func(model.Offset)
	compaction  func() CompactionView
	clean       model.Offset // compaction has been through below this
	horizon     int64        // when the earliest tombstone or marker may go, ms; 0: none known
	stuckAt     model.Offset // end of the input of a compaction that got nowhere
	recovered   Recovered
	epoch       int32 // leader epoch of the last batch replayed

	// The committer's (recovery's, before it runs): the journal file that lists
	// this log already, and where the newest entry ends there.
	lastFile *journalFile
	lastPos  int64
}

// ID names the partition.
func (l *Log) ID() model.PartitionID { return l.id }

// Recovered hands out, once, what was found for this partition at start.
func (l *Log) Recovered() Recovered {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.recovered
	l.recovered.Since = nil
	return r
}

// SetSnapshotter may be called at any time; checkpoints take the snapshot from
// then on.
func (l *Log) SetSnapshotter(f Snapshotter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshotter = f
}

// SetPolicy replaces the retention policy.
func (l *Log) SetPolicy(p Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy = p
}

// SetOnStart names who is told, without any lock of the store held, that Start
// has moved: by retention or by TrimTo.
func (l *Log) SetOnStart(f func(model.Offset)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onStart = f
}

// Start is the first offset that may be read.
func (l *Log) Start() model.Offset { return model.Offset(l.start.Load()) }

// End is one past the last durable offset.
func (l *Log) End() model.Offset { return model.Offset(l.end.Load()) }

// Size is the number of bytes of batches between Start and End; a run of batches
// that Start cuts counts whole.
func (l *Log) Size() int64 { return l.size.Load() }

// TrimTo moves Start to o (not above End), durably; done is called as a group's
// Done is. ClassOutOfRange above End.
func (l *Log) TrimTo(o model.Offset, done func(error)) error {
	if o > l.End() {
		return l.outOfRange(o)
	}
	return l.store.Append(&storage.Group{
		Essential: true,
		Entries:   []storage.Entry{{Kind: storage.EntryTrim, Part: l.id, Base: o, Last: o, MaxTimestamp: -1}},
		Done:      func(_ model.LSN, err error) { done(err) },
	})
}

// Drop deletes the log for ever, durably; done is called as a group's Done is.
func (l *Log) Drop(done func(error)) error {
	return l.store.Append(&storage.Group{
		Essential: true,
		Entries:   []storage.Entry{{Kind: storage.EntryDrop, Part: l.id, MaxTimestamp: -1}},
		Done:      func(_ model.LSN, err error) { done(err) },
	})
}

// append takes in an entry that is durable. The committer calls it.
func (l *Log) append(e extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.End()
	if l.dropped || e.last < end {
		return
	}
	if e.base > end {
		l.damage = append(l.damage, damage{end, e.base - 1, reasonMissing})
	}
	l.extents = append(l.extents, e)
	l.size.Add(int64(e.size))
	l.end.Store(int64(e.last) + 1)
}

// trim moves Start up to o and lets go of what lies wholly below. It returns whom
// to tell, once mu is free.
func (l *Log) trim(o model.Offset) (notify func(model.Offset)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o <= l.Start() || l.dropped {
		return nil
	}
	l.start.Store(int64(o))
	if o > l.End() {
		l.end.Store(int64(o))
	}
	l.forgetBelowLocked(o)
	return l.onStart
}

// forgetBelowLocked lets go of what lies wholly below o.
func (l *Log) forgetBelowLocked(o model.Offset) {
	n := 0
	for n < len(l.spans) && l.spans[n].last < o {
		l.store.unrefer(l.spans[n])
		l.size.Add(-l.spans[n].bytes)
		n++
	}
	l.spans = shrink(slices.Delete(l.spans, 0, n))
	n = 0
	for n < len(l.extents) && l.extents[n].last < o {
		l.store.tail.releaseLocked(l.extents[n].slot)
		l.size.Add(-int64(l.extents[n].size))
		n++
	}
	l.extents = shrink(slices.Delete(l.extents, 0, n))
	l.damage = slices.DeleteFunc(l.damage, func(d damage) bool { return d.last < o })
}

// drop lets go of everything, for ever.
func (l *Log) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped {
		return
	}
	l.forgetBelowLocked(1<<63 - 1)
	l.dropped = true
	l.start.Store(l.end.Load())
	l.recovered, l.snapshotter, l.onStart, l.compaction = Recovered{}, nil, nil, nil
}

// shrink gives memory back after a large list has become short.
func shrink[T any](s []T) []T {
	if cap(s) > 64 && len(s) < cap(s)/4 {
		return slices.Clone(s)
	}
	return s
}

// damageAtLocked finds the first damage that ends at or after o.
func (l *Log) damageAtLocked(o model.Offset) *damage {
	for i := range l.damage {
		if l.damage[i].last >= o {
			return &l.damage[i]
		}
	}
	return nil
}

// extentAtLocked and spanAtLocked find the first that ends at or after o.
func (l *Log) extentAtLocked(o model.Offset) int {
	return sort.Search(len(l.extents), func(i int) bool { return l.extents[i].last >= o })
}

func (l *Log) spanAtLocked(o model.Offset) int {
	return sort.Search(len(l.spans), func(i int) bool { return l.spans[i].last >= o })
}
