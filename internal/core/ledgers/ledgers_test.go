package ledgers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// node is a broker without fronts, in memory.
type node struct {
	t     testing.TB
	fs    *vfs.Mem
	store *partlog.Store
	cat   *topics.Catalogue
	k     *Keeper
	cfg   Config
}

func newNode(t testing.TB, cfg Config) *node {
	n := &node{t: t, fs: vfs.NewMem(1 << 30), cfg: cfg}
	n.start()
	for _, name := range []string{"t", "dead"} {
		_, err := n.cat.Create(context.Background(), topics.Spec{Name: name, Partitions: 1}, false)
		n.must(err)
	}
	t.Cleanup(n.stop)
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) start() {
	n.t.Helper()
	ctx := context.Background()
	var err error
	n.store, err = partlog.Open(ctx, partlog.Options{FS: n.fs, Dir: "data", JournalFileSize: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	n.must(err)
	n.cat, err = topics.Open(ctx, topics.Options{Store: n.store, Now: time.Now})
	n.must(err)
	n.k, err = Open(ctx, Options{Topics: n.cat, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	n.must(err)
}

func (n *node) stop() {
	n.k.Close()
	_ = n.store.Close()
}

func (n *node) crash(seed uint64) {
	fs := n.fs.Crash(seed)
	n.stop()
	n.fs = fs
	n.start()
}

func (n *node) part(topic string) *partition.Partition {
	t, ok := n.cat.ByName(topic)
	if !ok {
		n.t.Fatalf("no topic %s", topic)
	}
	return t.Partitions[0]
}

func (n *node) produce(from, count int) {
	b := records.NewBuilder(records.Plain(time.Now()))
	for i := from; i < from+count; i++ {
		b.Add(0, fmt.Append(nil, "k", i%3), fmt.Append(nil, i), nil)
	}
	batch, err := b.Build(0)
	n.must(err)
	ch := make(chan error, 1)
	n.must(partition.Submit([]partition.Append{{To: n.part("t"), Batch: batch}}, func(_ []partition.Result, err error) { ch <- err }))
	n.must(<-ch)
}

// subscribe opens the one ledger of the tests; its dead letters go to topic dead.
func (n *node) subscribe() *Subscription {
	n.t.Helper()
	cfg := n.cfg
	cfg.DeadLetter = func(_ context.Context, d Dead) ([]partition.Append, error) {
		b := records.NewBuilder(records.Plain(time.Now()))
		for o := d.Span.First; o <= d.Span.Last; o++ {
			b.Add(0, nil, fmt.Append(nil, o), nil)
		}
		batch, err := b.Build(0)
		return []partition.Append{{To: n.part("dead"), Batch: batch, Origin: partition.FromCoordinator}}, err
	}
	s, _, err := n.k.Subscribe(Key{"share/g", n.part("t").ID()}, n.part("t"), 0, cfg)
	n.must(err)
	return s
}

func (n *node) acquire(s *Subscription, member string, count int) []ledger.Delivery {
	n.t.Helper()
	f, err := s.Acquire(context.Background(), member, Want{Records: count, Bytes: 1 << 20, Until: time.Now().Add(time.Hour).UnixMilli()})
	n.must(err)
	return f.Deliveries
}

func settle(s *Subscription, member string, st ...ledger.Settlement) ([]error, error) {
	type reply struct {
		errs []error
		err  error
	}
	ch := make(chan reply, 1)
	s.Settle(member, st, func(errs []error, err error) { ch <- reply{errs, err} })
	r := <-ch
	return r.errs, r.err
}

func one(o model.Offset, v ledger.Verb) ledger.Settlement {
	return ledger.Settlement{Span: ledger.Span{First: o, Last: o}, Verb: v}
}

// deadLetters lists the offsets that topic dead holds.
func (n *node) deadLetters() map[string]int {
	got := map[string]int{}
	w := n.part("dead").Watermarks()
	for at := w.LogStart; at < w.HighWatermark; {
		res, err := n.part("dead").Read(context.Background(), at, 1<<20, true, partition.ReadUncommitted)
		n.must(err)
		n.must(EachRecord(res.Data, func(_ model.Offset, r records.Record) error {
			got[string(r.Value)]++
			return nil
		}))
		at = res.Next
	}
	return got
}

func TestAcceptReleaseRejectAndDeadLetterSurviveARestart(t *testing.T) {
	n := newNode(t, Config{Config: ledger.Config{DeliveryLimit: 2}})
	n.produce(0, 6)
	s := n.subscribe()
	if got := n.acquire(s, "a", 10); len(got) != 1 || got[0].Len() != 6 || got[0].Count != 1 {
		t.Fatalf("acquired %v", got)
	}
	delayed := one(3, ledger.Release)
	delayed.Until = time.Now().Add(time.Hour).UnixMilli()
	errs, err := settle(s, "a", one(0, ledger.Accept), one(1, ledger.Reject), one(2, ledger.Release), delayed, one(0, ledger.Accept), one(9, ledger.Accept))
	if err != nil || errs[0] != nil || errs[3] != nil || !errors.Is(errs[4], ledger.ErrNotHeld) || !errors.Is(errs[5], ledger.ErrNotHeld) {
		t.Fatal(errs, err)
	}
	if got := n.deadLetters(); len(got) != 1 || got["1"] != 1 {
		t.Fatalf("dead letters %v", got)
	}
	n.crash(1)
	s = n.subscribe()
	// 4 and 5 were in flight: they come again, with their counts; 2 is on its second try.
	got := n.acquire(s, "b", 10)
	want := "[{{2 2} 2} {{4 5} 2}]"
	if fmt.Sprint(got) != want {
		t.Fatalf("after the crash %v, want %s", got, want)
	}
	if _, err := settle(s, "b", one(2, ledger.Release), one(4, ledger.Accept), one(5, ledger.Accept)); err != nil {
		t.Fatal(err)
	}
	if got := n.deadLetters(); len(got) != 2 || got["2"] != 1 {
		t.Fatalf("dead letters %v: 2 reached its limit", got)
	}
	d := s.Describe()
	if d.Start != 3 || d.Delayed != 1 || d.ReadyTotal != 0 {
		t.Fatalf("%+v", d)
	}
}

func TestDelayEndsOnTimeAndWakesWhoWaits(t *testing.T) {
	n := newNode(t, Config{})
	n.produce(0, 1)
	s := n.subscribe()
	n.acquire(s, "a", 1)
	w := partition.NewWaiter()
	s.Watch(w)
	defer s.Unwatch(w)
	st := one(0, ledger.Release)
	at := time.Now().Add(80 * time.Millisecond)
	st.Until = at.UnixMilli()
	if _, err := settle(s, "a", st); err != nil {
		t.Fatal(err)
	}
	for len(n.acquire(s, "a", 1)) == 0 {
		<-w.C
	}
	if early := time.Until(at.Truncate(time.Millisecond)); early > 0 {
		t.Fatalf("delivered %v early", early)
	}
}

func TestTheLogOfLedgersStaysSmall(t *testing.T) {
	n := newNode(t, Config{})
	n.produce(0, 20_000)
	s := n.subscribe()
	for range 40 {
		for _, d := range n.acquire(s, "a", 500) {
			// Every other record stays in flight, so the ledger grows and its snapshots with it.
			var all []ledger.Settlement
			for o := d.First; o <= d.Last; o++ {
				all = append(all, one(o, ledger.Accept))
			}
			if _, err := settle(s, "a", all...); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.snapshot()
	n.crash(2)
	s = n.subscribe()
	if d := s.Describe(); d.Start != 20_000 {
		t.Fatalf("%+v", d)
	}
}

// TestNothingIsLostOverCrashes is the accounting check with the whole engine
// below: random members, crashes that lose unsynced writes, dead letters.
func TestNothingIsLostOverCrashes(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := newNode(t, Config{Config: ledger.Config{DeliveryLimit: 3, KeyOrder: seed%2 == 0}})
		const total = 60
		n.produce(0, total)
		s := n.subscribe()
		accepted, count := map[model.Offset]bool{}, map[model.Offset]int{}
		held := map[model.Offset]string{}
		finished := func() bool { return len(accepted)+len(n.deadLetters()) == total }
		for step := 0; !finished(); step++ {
			if step > 5000 {
				t.Fatalf("seed %d: stuck: %+v", seed, s.Describe())
			}
			member := fmt.Sprint("m", rng.IntN(3))
			switch r := rng.IntN(100); {
			case r < 45:
				for _, d := range n.acquire(s, member, 1+rng.IntN(5)) {
					for o := d.First; o <= d.Last; o++ {
						if accepted[o] || held[o] != "" {
							t.Fatalf("seed %d: offset %d delivered again (accepted %v, held by %q)", seed, o, accepted[o], held[o])
						}
						if count[o]++; d.Count != count[o] {
							t.Fatalf("seed %d: offset %d: count %d, want %d", seed, o, d.Count, count[o])
						}
						held[o] = member
					}
				}
			case r < 95:
				for o, m := range held {
					if m != member {
						continue
					}
					verb := ledger.Verb(rng.IntN(3))
					errs, err := settle(s, m, one(o, verb))
					if err != nil || errs[0] != nil {
						t.Fatalf("seed %d: settle %d: %v %v", seed, o, errs, err)
					}
					delete(held, o)
					if verb == ledger.Accept {
						accepted[o] = true
					}
					break
				}
			default:
				n.crash(seed*100 + uint64(step))
				s = n.subscribe()
				clear(held)
			}
		}
		for o := range accepted {
			if n.deadLetters()[fmt.Sprint(o)] > 0 {
				t.Fatalf("seed %d: offset %d was accepted and is dead", seed, o)
			}
		}
	}
}

func FuzzDecodeValue(f *testing.F) {
	f.Add(encodeDeltas(7, []ledger.Delta{{Span: ledger.Span{First: 3, Last: 9}, State: ledger.Delayed, Count: 2, Until: 99}, {Span: ledger.Span{First: 10, Last: 10}, State: ledger.Settled}}))
	for _, v := range encodeSnapshot(8, ledger.Snapshot{Start: 3, End: 20, Deltas: []ledger.Delta{{Span: ledger.Span{First: 4, Last: 4}, Count: 1}}}) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodeValue(data)
		if err != nil {
			return
		}
		var again []byte
		if p.kind == kindDelta {
			again = encodeDeltas(p.seq, p.deltas)
		} else {
			return
		}
		q, err := decodeValue(again)
		if err != nil || fmt.Sprint(q) != fmt.Sprint(p) {
			t.Fatalf("re-encoding changes %v to %v: %v", p, q, err)
		}
	})
}

// A delay that cannot be read, or that no time can hold, is none.
func TestDelayHeader(t *testing.T) {
	l := looker{delayHeader: "x-delay", now: 1000}
	for text, want := range map[string]int64{
		"500": 1400, "50": 0, "": 0, "soon": 0, "-5": 0, "1.5": 0, " 7": 0, "99999999999999999999": 0, "9223372036854775807": 0,
	} {
		b := records.NewBuilder(records.Meta{FirstTimestamp: 900, ProducerID: model.NoProducer})
		b.Add(0, nil, nil, []records.Header{{Key: "x-delay", Value: []byte(text)}})
		batch, err := b.Build(0)
		if err != nil {
			t.Fatal(err)
		}
		err = eachRecord(batch, func(o model.Offset, r records.Record) error {
			c, err := l.candidate(batch, o, r)
			if c.NotBefore != want {
				t.Errorf("%q: not before %d, want %d", text, c.NotBefore, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
