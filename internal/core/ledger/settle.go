package ledger

import (
	"errors"

	"github.com/daybook-mq/daybook/internal/model"
)

// Verb is what a consumer says of its deliveries.
type Verb uint8

// The verbs. Numbers are Daybook's; fronts map theirs.
const (
	Accept  Verb = iota // done
	Release             // give back, at once or after a delay
	Reject              // never again: dead-letter
	Renew               // hold on longer
)

// Settlement is one word of a consumer.
type Settlement struct {
	Span
	Verb  Verb
	Until int64 // Release: not ready before (0: at once); Renew: the new lock's end. Milliseconds.
	// Return gives a Release back uncounted (a cancelled prefetch).
	Return bool
}

// Death says that offsets are to be dead-lettered.
type Death struct {
	Span
	Count  int
	Reason string
}

// Changes is what a command brought about: deltas to make durable before anybody
// is told, and records to dead-letter.
type Changes struct {
	Deltas []Delta
	Dead   []Death
}

func (c *Changes) delta(s Span, r run) {
	d := Delta{s, r.state, r.count, r.until}
	if r.state != Delayed {
		d.Until = 0
	}
	c.Deltas = append(c.Deltas, d)
}

// ErrNotHeld says that member does not hold all of a settlement's span: the lock
// ran out, it was settled before, or it was never acquired.
var ErrNotHeld = errors.New("not acquired by this member")

// Settle applies one settlement of member. It is all or nothing: ErrNotHeld
// changes nothing.
func (l *Ledger) Settle(member Member, s Settlement) (Changes, error) {
	var ch Changes
	held := l.heldBy(member, s.Span)
	if held == nil {
		return ch, ErrNotHeld
	}
	for _, h := range held {
		span, r := h.span, h.r
		switch s.Verb {
		case Accept:
			ch.delta(span, run{state: Settled})
			l.put(span, run{state: Settled})
			l.unhold(span, false)
		case Reject:
			l.die(span, r, "rejected", &ch)
		case Renew:
			r.until = s.Until
			l.put(span, r)
			l.alarm(s.Until, span.First)
		case Release:
			if s.Return && r.count > 0 {
				r.count--
			}
			l.release(span, r, s.Until, "released", &ch)
		}
	}
	return ch, nil
}

type piece struct {
	span Span
	r    run
}

// heldBy gives the pieces of s if member holds every one of them, else nil.
func (l *Ledger) heldBy(member Member, s Span) []piece {
	if s.First > s.Last || s.First < l.start || s.Last >= l.end {
		return nil
	}
	var out []piece
	for o := s.First; o <= s.Last; {
		_, r, ok := l.find(o)
		if !ok || r.state != Acquired || r.owner != member {
			return nil
		}
		last := min(r.last, s.Last)
		out = append(out, piece{Span{o, last}, r})
		o = last + 1
	}
	return out
}

// release gives offsets back: ready, delayed, or dead when the limit is reached.
func (l *Ledger) release(s Span, r run, until int64, why string, ch *Changes) {
	if l.cfg.DeliveryLimit > 0 && int(r.count) >= l.cfg.DeliveryLimit {
		l.die(s, r, "delivery limit: "+why, ch)
		return
	}
	next := run{state: Ready, count: r.count}
	if until > 0 {
		next.state, next.until = Delayed, until
	}
	ch.delta(s, next)
	l.put(s, next)
	if next.state == Delayed {
		l.alarm(until, s.First)
		if l.cfg.KeyOrder && l.cfg.DelayLetsPass {
			l.pass(s)
		}
	}
}

// die starts the dead-lettering of offsets; Bury ends it.
func (l *Ledger) die(s Span, r run, reason string, ch *Changes) {
	l.put(s, run{state: Dying, count: r.count})
	ch.Dead = append(ch.Dead, Death{s, int(r.count), reason})
}

// Dying gives the deltas that settle the dying offsets of s. They belong into the
// append group that holds the dead letters; when it is accepted, Bury follows.
func (l *Ledger) Dying(s Span) (ds []Delta) {
	for o := s.First; o <= s.Last; {
		_, r, ok := l.find(o)
		if !ok { // settled meanwhile
			o++
			continue
		}
		span := Span{o, min(r.last, s.Last)}
		if r.state == Dying {
			ds = append(ds, Delta{Span: span, State: Settled})
		}
		o = span.Last + 1
	}
	return ds
}

// Bury settles dying offsets and lets go of their keys (or parks them).
func (l *Ledger) Bury(ds []Delta) {
	for _, d := range ds {
		l.put(d.Span, run{state: Settled})
		l.unhold(d.Span, true)
	}
}

// ReleaseMember gives back all that member holds (it left, or its session ended).
func (l *Ledger) ReleaseMember(member Member) Changes {
	var ch Changes
	var held []piece
	l.runs.scanHeld(func(first model.Offset, r run) bool {
		if r.owner == member {
			held = append(held, piece{Span{first, r.last}, r})
		}
		return true
	})
	for _, h := range held {
		l.release(h.span, h.r, 0, "member left", &ch)
	}
	return ch
}

// Delay makes ready offsets wait until a time (a delayed publish).
func (l *Ledger) Delay(s Span, until int64) Changes {
	var ch Changes
	l.postpone(s, until, &ch)
	return ch
}

// Skip settles offsets that no consumer can ever get: gaps, markers, aborted
// records, what the log trimmed.
func (l *Ledger) Skip(s Span) Changes {
	var ch Changes
	s.First = max(s.First, l.start)
	if s.First > s.Last {
		return ch
	}
	ch.delta(s, run{state: Settled})
	l.put(s, run{state: Settled})
	l.unhold(s, false)
	return ch
}
