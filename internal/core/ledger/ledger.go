// Package ledger is the settlement state of one subscription over one partition:
// what is ready, in flight, settled, delayed or dead. It is a cursor with memory,
// and every queue contract stands on it: Kafka's share groups (KIP-932) and
// AMQP's queues.
//
// The Ledger is a pure machine: it is handed time and records' offsets and keys,
// changes its state at once, and returns what must be durable before anybody is
// told (Delta). It starts no goroutine, reads no clock, and does not know
// partitions, members' connections or wire codes.
//
// ledger.go holds the state; acquire.go hands out, settle.go takes back, keys.go
// keeps the order of keys, replay.go gives the state back from deltas.
package ledger

import "github.com/daybook-mq/daybook/internal/model"

// State is what a ledger knows of one offset between its start and its end.
type State uint8

// The states. Below the start everything is settled, from the end on everything
// is ready.
const (
	Ready    State = iota // may be acquired
	Waiting               // ready, but an earlier record of its key is not settled
	Acquired              // in flight, until a time
	Dying                 // over its limit or rejected; being dead-lettered
	Delayed               // ready again at a time
	Settled               // accepted, rejected or dead; never delivered again
)

// Member names who holds deliveries; the shell gives out the numbers. Nobody is 0.
type Member uint32

// Span is a range of offsets, both ends included.
type Span struct{ First, Last model.Offset }

// Len counts the offsets.
func (s Span) Len() int64 { return int64(s.Last-s.First) + 1 }

// Delta is a change that must be durable before its effect is told: what the
// offsets of Span are now. Acquired is stored as Ready with its count, so that a
// restart hands the records out again and says so.
type Delta struct {
	Span
	State State // Ready, Delayed or Settled
	Count uint16
	Until int64 // Delayed: milliseconds
}

// Config bounds and shapes a ledger. Times are in milliseconds.
type Config struct {
	// DeliveryLimit is the number of deliveries after which a record is dead; 0: no limit.
	DeliveryLimit int
	// MaxInFlight bounds the acquired records of all members.
	MaxInFlight int
	// MaxTracked bounds the runs that differ from plain ready and settled, and so
	// the memory; at the bound nothing new is acquired until something settles.
	MaxTracked int
	// MaxWaiting bounds the records that wait for their keys; at the bound nothing
	// further is looked at until some of them go (KeyOrder).
	MaxWaiting int
	// KeyOrder lets at most one record of a key be in flight, in offset order.
	KeyOrder bool
	// DelayLetsPass lets later records of a key overtake one that is delayed.
	DelayLetsPass bool
	// ParkDeadKeys keeps a key closed after one of its records died, until Unpark.
	ParkDeadKeys bool
}

// Default bounds.
const (
	DefaultMaxInFlight = 2_000
	DefaultMaxTracked  = 16_000_000
	DefaultMaxWaiting  = 100_000
)

// Ledger is the machine.
//
// Invariants:
//   - the runs lie in [start, end), do not overlap, and neighbours differ; what
//     none of them covers there is settled;
//   - the first run begins at start, unless there is none: then start is end;
//   - inFlight counts the Acquired and Dying offsets;
//   - with KeyOrder, every acquired, dying or delayed offset and every ready one
//     below examined holds its key in keys, and every waiting one stands in its line.
type Ledger struct {
	cfg Config

	start, end model.Offset
	runs       runs

	inFlight, delayed, waiting int64
	readyBelowEnd              int64

	alarms alarms // times at which acquired and delayed runs change
	keys   keyOrder
}

// New makes a ledger whose first unsettled offset is start.
func New(start model.Offset, cfg Config) *Ledger {
	return &Ledger{cfg: cfg.withDefaults(), start: start, end: start, keys: newKeyOrder()}
}

func (cfg Config) withDefaults() Config {
	for _, d := range []struct {
		v   *int
		def int
	}{{&cfg.MaxInFlight, DefaultMaxInFlight}, {&cfg.MaxTracked, DefaultMaxTracked}, {&cfg.MaxWaiting, DefaultMaxWaiting}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	return cfg
}

// Reconfigure changes bounds and choices; KeyOrder stays as it was made.
func (l *Ledger) Reconfigure(cfg Config) {
	cfg.KeyOrder = l.cfg.KeyOrder
	l.cfg = cfg.withDefaults()
}

// Start is the first offset that is not settled; End is the offset from which on
// everything is ready and was never delivered.
func (l *Ledger) Start() model.Offset { return l.start }

// End is the offset from which on nothing was ever delivered or settled.
func (l *Ledger) End() model.Offset { return l.end }

// Counts is how many records are in which state between start and end. Records
// from the end on are ready as well; the log knows how many those are.
type Counts struct {
	Ready, Waiting, InFlight, Delayed int64
	Runs                              int
}

// Counts reads the counters.
func (l *Ledger) Counts() Counts {
	return Counts{l.readyBelowEnd, l.waiting, l.inFlight, l.delayed, l.runs.len()}
}

func (l *Ledger) count(r run, n int64) {
	switch r.state {
	case Ready:
		l.readyBelowEnd += n
	case Waiting:
		l.waiting += n
	case Acquired, Dying:
		l.inFlight += n
	case Delayed:
		l.delayed += n
	}
}

// find gives the run that contains o and its first offset; ok is false for what
// is settled or not known.
func (l *Ledger) find(o model.Offset) (first model.Offset, r run, ok bool) { return l.runs.find(o) }

// put makes the offsets of s what r says (r.last is ignored), splitting, joining
// and moving start as needed. It is the only writer of runs.
func (l *Ledger) put(s Span, r run) {
	s.First = max(s.First, l.start)
	if s.First > s.Last {
		return
	}
	l.extendTo(s.Last + 1)
	l.runs.cut(s.First)
	if r, ok := l.runs.cut(s.Last + 1); ok && (r.state == Acquired || r.state == Delayed) {
		l.alarm(r.until, s.Last+1) // the alarm of the whole names its first offset only
	}
	for first, old, ok := l.runs.from(s.First); ok && first <= s.Last; first, old, ok = l.runs.from(s.First) {
		l.runs.unset(first)
		l.count(old, -int64(old.last-first)-1)
	}
	if r.state != Settled {
		r.last = s.Last
		l.count(r, s.Len())
		l.runs.insert(s.First, r)
	}
	l.start = l.end
	if first, _, ok := l.runs.from(0); ok {
		l.start = first
	}
}

// extendTo moves the end up to o; what it passes over is ready.
func (l *Ledger) extendTo(o model.Offset) {
	if o <= l.end {
		return
	}
	first := l.end
	l.end = o
	r := run{last: o - 1, state: Ready}
	l.count(r, int64(o-first))
	l.runs.insert(first, r)
}

// Spans calls f for every run that is not settled between start and end, in order,
// until f says no.
func (l *Ledger) Spans(f func(s Span, st State, count int, until int64, owner Member) bool) {
	l.runs.scan(func(first model.Offset, r run) bool {
		return f(Span{first, r.last}, r.state, int(r.count), r.until, r.owner)
	})
}

// Held calls f for every span that a member holds, in order.
func (l *Ledger) Held(f func(s Span, m Member)) {
	l.runs.scanHeld(func(first model.Offset, r run) bool {
		f(Span{first, r.last}, r.owner)
		return true
	})
}

// DeliveryCount is how often the record at o was delivered; 0 outside of start
// and end.
func (l *Ledger) DeliveryCount(o model.Offset) int {
	_, r, ok := l.find(o)
	if !ok {
		return 0
	}
	return int(r.count)
}

// String names a state.
func (s State) String() string {
	names := [...]string{"ready", "waiting", "acquired", "dying", "delayed", "settled"}
	if int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}
