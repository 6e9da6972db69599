package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
)

// check proves the ledger's invariants.
func (l *Ledger) check() error {
	at := l.start
	var sum Counts
	var prev *run
	err := error(nil)
	l.runs.scan(func(first model.Offset, r run) bool {
		switch {
		case first < at || r.last < first || prev == nil && first != l.start:
			err = fmt.Errorf("run %d-%d overlaps the one before, which ends at %d, or does not begin at the start %d", first, r.last, at, l.start)
		case r.state == Settled:
			err = fmt.Errorf("settled run %d-%d is stored", first, r.last)
		case prev != nil && prev.last+1 == first && joins(*prev, r):
			err = fmt.Errorf("equal neighbours at %d", first)
		}
		n := int64(r.last-first) + 1
		switch r.state {
		case Ready:
			sum.Ready += n
			if _, ok := l.runs.ready.Get(first); !ok {
				err = fmt.Errorf("ready run %d is not indexed", first)
			}
		case Waiting:
			sum.Waiting += n
		case Acquired, Dying:
			sum.InFlight += n
		case Delayed:
			sum.Delayed += n
		}
		at, prev = r.last+1, &r
		return err == nil
	})
	sum.Runs = l.runs.len()
	switch {
	case err != nil:
		return err
	case at > l.end || prev == nil && l.start != l.end:
		return fmt.Errorf("runs end at %d, the ledger goes from %d to %d", at, l.start, l.end)
	case sum != l.Counts():
		return fmt.Errorf("counted %+v, counters say %+v", sum, l.Counts())
	}
	return nil
}

// world is the plain model that the ledger is held against: one entry an offset.
type world struct {
	t      *testing.T
	l      *Ledger
	cfg    Config
	keys   []uint64 // of each offset; the log
	st     []State
	by     []Member
	until  []int64
	count  []int
	passed []bool // was delayed once, so later records of its key may have overtaken it
	now    int64

	durable []Delta
	snap    Snapshot
}

func (w *world) take(ch Changes) {
	w.durable = append(w.durable, ch.Deltas...)
	for _, d := range ch.Dead {
		for o := d.First; o <= d.Last; o++ {
			if w.st[o] != Acquired && w.st[o] != Ready {
				w.t.Fatalf("offset %d died in state %d", o, w.st[o])
			}
			w.st[o] = Settled
		}
		dying := w.l.Dying(d.Span)
		w.l.Bury(dying)
		w.durable = append(w.durable, dying...)
	}
}

func (w *world) giveBack(o model.Offset) {
	if w.cfg.DeliveryLimit > 0 && w.count[o] >= w.cfg.DeliveryLimit {
		return // take marks it dead
	}
	w.st[o], w.by[o] = Ready, 0
}

func (w *world) acquire(m Member, rng *rand.Rand) {
	var cands []Candidate
	for o := w.l.NextReady(w.l.Start()); int(o) < len(w.keys) && len(cands) < 10; o = w.l.NextReady(o + 1) {
		cands = append(cands, Candidate{Span: Span{o, o}, Key: w.keys[o], Keyed: true})
	}
	limit := 1 + rng.IntN(8)
	got, ch := w.l.Acquire(m, w.now+20, cands, limit)
	w.take(ch)
	n := 0
	for _, d := range got {
		for o := d.First; o <= d.Last; o++ {
			n++
			if w.st[o] != Ready {
				w.t.Fatalf("offset %d delivered in state %d (held by %d until %d, now %d)", o, w.st[o], w.by[o], w.until[o], w.now)
			}
			if w.cfg.KeyOrder {
				for p := model.Offset(0); p < o; p++ {
					if w.keys[p] == w.keys[o] && w.st[p] != Settled && !(w.passed[p] && w.cfg.DelayLetsPass) {
						w.t.Fatalf("offset %d of key %d delivered before %d was settled", o, w.keys[o], p)
					}
				}
			}
			w.count[o]++
			if d.Count != w.count[o] {
				w.t.Fatalf("offset %d: delivery count %d, want %d", o, d.Count, w.count[o])
			}
			w.st[o], w.by[o], w.until[o] = Acquired, m, w.now+20
		}
	}
	if n > limit {
		w.t.Fatalf("%d records acquired, at most %d asked", n, limit)
	}
}

func (w *world) settle(m Member, rng *rand.Rand) {
	if len(w.keys) == 0 {
		return
	}
	o := model.Offset(rng.IntN(len(w.keys)))
	s := Settlement{Span: Span{o, o}, Verb: Verb(rng.IntN(4))}
	delay := rng.IntN(2) * (5 + rng.IntN(30))
	if s.Verb == Renew || (s.Verb == Release && delay > 0) {
		s.Until = w.now + int64(delay)
	}
	holds := w.st[o] == Acquired && w.by[o] == m
	ch, err := w.l.Settle(m, s)
	if (err == nil) != holds {
		w.t.Fatalf("settling %d by %d (state %d, by %d): %v", o, m, w.st[o], w.by[o], err)
	}
	if err != nil {
		if !errors.Is(err, ErrNotHeld) {
			w.t.Fatal(err)
		}
		return
	}
	switch s.Verb {
	case Accept:
		w.st[o] = Settled
	case Renew:
		w.until[o] = s.Until
	case Release:
		w.giveBack(o)
		if w.st[o] == Ready && s.Until > 0 {
			w.st[o], w.until[o], w.passed[o] = Delayed, s.Until, true
		}
	}
	w.take(ch)
}

func (w *world) tick() {
	for o := range w.st {
		if w.until[o] > w.now {
			continue
		}
		switch w.st[o] {
		case Acquired:
			w.giveBack(model.Offset(o))
		case Delayed:
			w.st[o] = Ready
		}
	}
	w.take(w.l.Tick(w.now))
}

// restart forgets everything that is not durable and rebuilds from the last
// snapshot and the deltas since.
func (w *world) restart() {
	l := Restore(w.snap, w.cfg)
	for _, d := range w.durable {
		l.Apply(d)
	}
	for _, s := range l.NeedKeys() {
		for o := s.First; o <= s.Last; o++ {
			l.Rekey(o, w.keys[o])
		}
	}
	w.l = l
	for o := range w.st {
		if w.st[o] == Acquired {
			w.st[o], w.by[o] = Ready, 0
		}
	}
}

func TestAccountingHoldsUnderRandomUse(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{DeliveryLimit: rng.IntN(4), MaxInFlight: 5 + rng.IntN(20), KeyOrder: seed%2 == 0, DelayLetsPass: seed%4 == 0}
		w := &world{t: t, l: New(0, cfg), cfg: cfg}
		for step := range 300 {
			m := Member(1 + rng.IntN(3))
			switch r := rng.IntN(100); {
			case r < 25:
				w.keys = append(w.keys, uint64(rng.IntN(4)))
				w.st, w.by = append(w.st, Ready), append(w.by, 0)
				w.until, w.count, w.passed = append(w.until, 0), append(w.count, 0), append(w.passed, false)
			case r < 50:
				w.acquire(m, rng)
			case r < 80:
				w.settle(m, rng)
			case r < 90:
				w.now += int64(rng.IntN(12))
				if rng.IntN(8) == 0 {
					w.now = max(0, w.now-int64(rng.IntN(60))) // somebody set the clock
				}
				w.tick()
			case r < 94:
				for o := range w.st {
					if w.st[o] == Acquired && w.by[o] == m {
						w.giveBack(model.Offset(o))
					}
				}
				w.take(w.l.ReleaseMember(m))
			case r < 96 && !cfg.KeyOrder && len(w.keys) > 0:
				o := model.Offset(rng.IntN(len(w.keys)))
				if w.st[o] == Settled {
					w.st[o], w.count[o] = Ready, 0
				}
				w.take(w.l.Reopen(Span{o, o}))
			case r < 97:
				w.snap, w.durable = w.l.Snapshot(), nil
			default:
				w.restart()
			}
			if err := w.l.check(); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
		}
		w.drain(seed)
	}
}

// drain accepts everything that is left: nothing may be lost or stuck.
func (w *world) drain(seed uint64) {
	for range 10 * (len(w.keys) + 1) {
		w.now += 100
		w.tick()
		w.acquire(9, rand.New(rand.NewPCG(seed, 2)))
		for o := range w.st {
			if w.st[o] == Acquired && w.by[o] == 9 {
				ch, err := w.l.Settle(9, Settlement{Span: Span{model.Offset(o), model.Offset(o)}})
				if err != nil {
					w.t.Fatalf("seed %d: accept %d: %v", seed, o, err)
				}
				w.st[o] = Settled
				w.take(ch)
			}
		}
		if w.l.Start() == model.Offset(len(w.keys)) {
			return
		}
	}
	w.t.Fatalf("seed %d: stuck at %d of %d: %+v", seed, w.l.Start(), len(w.keys), w.l.Counts())
}
