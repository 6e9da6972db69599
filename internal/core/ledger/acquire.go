package ledger

import "github.com/daybook-mq/daybook/internal/model"

// Candidate is a record, or a run of records, that the shell read and offers.
// With KeyOrder each candidate is one record and Key is the hash of its key;
// records without a key have Keyed false and are in nobody's way.
type Candidate struct {
	Span
	Key   uint64
	Keyed bool
	// NotBefore makes a record that was never delivered wait until then
	// (milliseconds) instead of being acquired; 0: at once.
	NotBefore int64
}

// Delivery is a span that a member holds now; Count says how often its records
// were delivered, this time included.
type Delivery struct {
	Span
	Count int
}

// NextReady is the lowest offset at or above from that may be acquired. Offsets
// at the end and above always may, as far as the ledger knows.
func (l *Ledger) NextReady(from model.Offset) model.Offset {
	if from >= l.end {
		return from
	}
	if _, r, ok := l.find(from); ok && r.state == Ready {
		return from
	}
	next := l.end
	l.runs.ready.Ascend(from, func(o model.Offset, _ struct{}) bool {
		next = o
		return false
	})
	return next
}

// Room is how many more records may be acquired now.
func (l *Ledger) Room() int {
	if l.runs.len() >= l.cfg.MaxTracked {
		return 0
	}
	return max(0, l.cfg.MaxInFlight-int(l.inFlight))
}

// Acquire gives member what is ready of the candidates (in offset order), at most
// limit records, until the given time (milliseconds). With KeyOrder, a record
// whose key is held is put in the key's line instead.
func (l *Ledger) Acquire(member Member, until int64, candidates []Candidate, limit int) ([]Delivery, Changes) {
	var ch Changes
	var got []Delivery
	limit = min(limit, l.Room())
	for _, c := range candidates {
		for o := max(c.First, l.start); o <= c.Last && limit > 0; {
			o = l.NextReady(o)
			if o > c.Last || (o >= l.end && l.waiting >= int64(l.cfg.MaxWaiting)) {
				break
			}
			s, r := l.readyAt(o, min(c.Last, o+model.Offset(limit)-1))
			o = s.Last + 1
			if l.cfg.KeyOrder && c.Keyed && !l.hold(c.Key, s.First, r.count) {
				continue
			}
			if c.NotBefore > 0 && r.count == 0 {
				l.postpone(s, c.NotBefore, &ch)
				continue
			}
			if l.cfg.DeliveryLimit > 0 && int(r.count) >= l.cfg.DeliveryLimit {
				l.die(s, r, "delivery limit", &ch) // a restart came between its last delivery and its end
				continue
			}
			next := run{state: Acquired, owner: member, until: until, count: min(r.count, maxCount-1) + 1}
			l.put(s, next)
			l.alarm(until, s.First)
			ch.delta(s, run{state: Ready, count: next.count})
			got = append(got, Delivery{s, int(next.count)})
			limit -= int(s.Len())
		}
	}
	return got, ch
}

// postpone makes ready offsets wait until a time.
func (l *Ledger) postpone(s Span, until int64, ch *Changes) {
	next := run{state: Delayed, until: until}
	ch.delta(s, next)
	l.put(s, next)
	l.alarm(until, s.First)
	if l.cfg.KeyOrder && l.cfg.DelayLetsPass {
		l.pass(s)
	}
}

// readyAt gives the ready span that begins at o, ending at last at the latest.
func (l *Ledger) readyAt(o, last model.Offset) (Span, run) {
	if o >= l.end {
		return Span{o, last}, run{}
	}
	_, r, _ := l.find(o)
	return Span{o, min(last, r.last)}, r
}
