package ledger

import (
	"github.com/tidwall/btree"

	"github.com/daybook-mq/daybook/internal/model"
)

// Reopen makes settled offsets ready again, never delivered: a dead letter that is
// to be tried once more by this subscription alone. What is not settled, or not yet
// reached, stays as it is.
func (l *Ledger) Reopen(s Span) Changes {
	var ch Changes
	s.First, s.Last = max(s.First, 0), min(s.Last, l.end-1)
	for at := s.First; at <= s.Last; {
		if _, in, ok := l.find(at); ok {
			at = in.last + 1
			continue
		}
		last := s.Last
		if next, _, ok := l.runs.from(at); ok {
			last = min(last, next-1)
		}
		settled := Span{at, last}
		ch.delta(settled, run{state: Ready})
		l.start = min(l.start, settled.First)
		l.put(settled, run{state: Ready})
		at = last + 1
	}
	return ch
}

// Apply takes a delta back in after a restart. Deltas must come in the order in
// which they were made.
func (l *Ledger) Apply(d Delta) {
	if d.State != Settled {
		l.start = min(l.start, d.First) // only Reopen says that of what is below the start
	}
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
