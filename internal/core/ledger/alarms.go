package ledger

import (
	"container/heap"

	"github.com/daybook-mq/daybook/internal/model"
)

// alarm is a time at which the offset may change by itself. It is a hint: the
// run at the offset says whether it still holds.
type alarm struct {
	at int64 // milliseconds
	o  model.Offset
}

type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}

// alarm sets an alarm. Alarms that no longer hold are dropped as they come up, or
// all at once when they are the larger part.
func (l *Ledger) alarm(at int64, o model.Offset) {
	if len(l.alarms) > 2*l.runs.len()+1024 {
		l.alarms = l.alarms[:0]
		l.runs.scan(func(first model.Offset, r run) bool {
			if r.state == Acquired || r.state == Delayed {
				l.alarms = append(l.alarms, alarm{r.until, first})
			}
			return true
		})
		heap.Init(&l.alarms)
	}
	heap.Push(&l.alarms, alarm{at, o})
}

// NextAlarm is when Tick has something to do, in milliseconds; false if nothing waits.
func (l *Ledger) NextAlarm() (int64, bool) {
	for len(l.alarms) > 0 {
		a := l.alarms[0]
		if _, r, ok := l.find(a.o); ok && r.until == a.at && (r.state == Acquired || r.state == Delayed) {
			return a.at, true
		}
		heap.Pop(&l.alarms)
	}
	return 0, false
}

// Tick does what is due at now: locks that ran out are released (their count is
// checked against the limit), delays that are over become ready.
func (l *Ledger) Tick(now int64) Changes {
	var ch Changes
	for {
		at, ok := l.NextAlarm()
		if !ok || at > now {
			return ch
		}
		o := heap.Pop(&l.alarms).(alarm).o
		first, r, _ := l.find(o)
		if r.state == Delayed {
			l.wake(Span{first, r.last}, r, &ch)
			continue
		}
		l.release(Span{first, r.last}, r, 0, "lock expired", &ch)
	}
}

// wake makes delayed offsets ready: their delay is over.
func (l *Ledger) wake(s Span, r run, ch *Changes) {
	next := run{state: Ready, count: r.count}
	ch.delta(s, next)
	l.put(s, next)
	if l.cfg.KeyOrder && l.cfg.DelayLetsPass {
		l.requeue(s, r.count)
	}
}
