package partlog

import "github.com/daybook-mq/daybook/internal/model"

// Debug is what a log keeps, for the debug pages.
type Debug struct {
	Start, End model.Offset
	Bytes      int64
	Extents    int // in journal files
	InMemory   int // of these, with their bytes in the memory tail
	Spans      []SpanDebug
	Damage     []DamageDebug `json:",omitempty"`
	Policy     Policy
}

// SpanDebug is one run of batches in a segment.
type SpanDebug struct {
	File       model.FileID
	Base, Last model.Offset
	Bytes      int64
}

// DamageDebug is a range of offsets that cannot be read.
type DamageDebug struct {
	Base, Last model.Offset
	Reason     string
}

// debugSpans bounds how many spans are shown: the newest.
const debugSpans = 100

// Debug shows the log.
func (l *Log) Debug() Debug {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := Debug{
		Start: model.Offset(l.start.Load()), End: model.Offset(l.end.Load()), Bytes: l.size.Load(),
		Extents: len(l.extents), Policy: l.policy,
	}
	for _, e := range l.extents {
		if e.slot != nil && e.slot.data != nil {
			d.InMemory++
		}
	}
	for _, s := range l.spans[max(0, len(l.spans)-debugSpans):] {
		d.Spans = append(d.Spans, SpanDebug{s.seg.id(), s.base, s.last, s.bytes})
	}
	for _, g := range l.damage {
		d.Damage = append(d.Damage, DamageDebug{g.base, g.last, g.reason})
	}
	return d
}
