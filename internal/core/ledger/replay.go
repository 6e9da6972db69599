package ledger

import "github.com/daybook-mq/daybook/internal/model"

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

// Snapshot takes one. Records in flight are ready in it, with their counts.
func (l *Ledger) Snapshot() Snapshot {
	s := Snapshot{Start: l.start, End: l.end}
	l.runs.Scan(func(first model.Offset, r run) bool {
		d := Delta{Span: Span{first, r.last}, State: r.state, Count: r.count}
		switch r.state {
		case Delayed:
			d.Until = r.until
		case Waiting, Acquired, Dying:
			d.State = Ready
		case Ready:
			if r.count == 0 {
				return true
			}
		}
		s.Deltas = append(s.Deltas, d)
		return true
	})
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
