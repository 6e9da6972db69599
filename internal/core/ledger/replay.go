package ledger

import (
	"github.com/tidwall/btree"

	"github.com/daybook-mq/daybook/internal/model"
)

// Apply takes a delta back in after a restart. Deltas must come in the order in
// which they were made.
func (l *Ledger) Apply(d Delta) {
	r := run{state: d.State, count: d.Count}
	if d.State == Delayed {
		r.until = d.Until
	}
	l.put(d.Span, r)
	if d.State == Delayed {
		l.alarm(d.Until, d.First)
	}
}

// Snapshot is the whole state as deltas over a start and an end; restoring it and
// applying the deltas made since gives the state back.
type Snapshot struct {
	Start, End model.Offset
	Deltas     []Delta
}

// Frozen is a ledger's state at one moment; it costs nothing to take and can be
// read while the ledger goes on.
type Frozen struct {
	start, end model.Offset
	runs       *btree.Map[model.Offset, cell]
}

// Freeze takes the state.
func (l *Ledger) Freeze() Frozen { return Frozen{l.start, l.end, l.runs.tree.Copy()} }

// Snapshot takes one of the present state.
func (l *Ledger) Snapshot() Snapshot { return l.Freeze().Snapshot() }

// Snapshot gives the state as deltas. Records in flight are ready in it, with
// their counts.
func (f Frozen) Snapshot() Snapshot {
	s := Snapshot{Start: f.start, End: f.end}
	at := f.start
	scan(f.runs, func(first model.Offset, r run) bool {
		if first > at {
			s.Deltas = append(s.Deltas, Delta{Span: Span{at, first - 1}, State: Settled})
		}
		at = r.last + 1
		d := Delta{Span: Span{first, r.last}, State: r.state, Count: r.count}
		switch r.state {
		case Delayed:
			d.Until = r.until
		case Waiting, Acquired, Dying:
			d.State = Ready
		}
		if d.State != Ready || d.Count > 0 {
			s.Deltas = append(s.Deltas, d)
		}
		return true
	})
	if at < f.end {
		s.Deltas = append(s.Deltas, Delta{Span: Span{at, f.end - 1}, State: Settled})
	}
	return s
}

// Restore makes a ledger from a snapshot.
func Restore(s Snapshot, cfg Config) *Ledger {
	l := New(s.Start, cfg)
	l.extendTo(s.End)
	for _, d := range s.Deltas {
		l.Apply(d)
	}
	return l
}
