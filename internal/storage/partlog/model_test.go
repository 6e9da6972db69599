package partlog

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// fakeClock is a clock that only moves when told to.
type fakeClock struct{ ns atomic.Int64 }

func newFakeClock() *fakeClock {
	c := &fakeClock{}
	c.ns.Store(epoch2020.UnixNano())
	return c
}

func (c *fakeClock) now() time.Time          { return time.Unix(0, c.ns.Load()).UTC() }
func (c *fakeClock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// modelLog is what a log must hold: the batches from start on.
type modelLog struct {
	id      model.PartitionID
	start   model.Offset
	batches []model.Batch
}

func (m *modelLog) end() model.Offset {
	if len(m.batches) == 0 {
		return 0
	}
	return m.batches[len(m.batches)-1].LastOffset() + 1
}

// check compares a whole log with the model, and reads at random places.
func (m *modelLog) check(t *testing.T, rng *rand.Rand, l *Log) {
	t.Helper()
	if l.Start() != m.start || l.End() != m.end() {
		t.Fatalf("%v is %d to %d, want %d to %d", m.id, l.Start(), l.End(), m.start, m.end())
	}
	m.checkFrom(t, l, m.start, 256<<rng.IntN(10))
	if m.end() > m.start {
		m.checkFrom(t, l, m.start+model.Offset(rng.Int64N(int64(m.end()-m.start))), 256<<rng.IntN(10))
	}
	ms := rng.Int64N(1000)
	var want model.Batch
	for _, b := range m.batches {
		if b.LastOffset() >= m.start && b.MaxTimestamp() >= ms {
			want = b
			break
		}
	}
	got, err := l.SearchTime(context.Background(), ms, l.End())
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v: search for time %d gives %v, want %v (%v)", m.id, ms, offsetOf(got), offsetOf(want), err)
	}
	want = nil
	for _, b := range m.batches {
		if b.LastOffset() >= m.start && (want == nil || b.MaxTimestamp() > want.MaxTimestamp()) {
			want = b
		}
	}
	got, err = l.MaxTimestamp(context.Background(), l.End())
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v: max timestamp at %v, want %v (%v)", m.id, offsetOf(got), offsetOf(want), err)
	}
}

func offsetOf(b model.Batch) any {
	if b == nil {
		return "none"
	}
	return b.BaseOffset()
}

func (m *modelLog) checkFrom(t *testing.T, l *Log, from model.Offset, maxBytes int) {
	t.Helper()
	got := readAll(t, l, from, maxBytes)
	i := 0
	for i < len(m.batches) && m.batches[i].LastOffset() < from {
		i++
	}
	want := m.batches[i:]
	if len(got) != len(want) {
		t.Fatalf("%v from %d: %d batches, want %d", m.id, from, len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("%v: batch %d at %d differs", m.id, i, want[i].BaseOffset())
		}
	}
}

// TestAgainstModel runs random appends, trims, drops, background work and
// restarts, and compares every log with a slice of batches.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(16) {
		runModel(t, seed)
	}
}

func runModel(t *testing.T, seed uint64) {
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	fs, clock := vfs.NewMem(0), newFakeClock()
	o := testOptions(fs)
	o.Clock = clock.now
	o.MemoryBudget = 1 << (8 + rng.IntN(12))
	o.JournalCap = 1 << (16 + rng.IntN(5))
	o.OpenFiles = 1 + rng.IntN(5)
	s := open(t, o)
	maxPayload := 1 << (5 + rng.IntN(11))
	logs := make([]*modelLog, 1+rng.IntN(6))
	for i := range logs {
		logs[i] = &modelLog{id: part(byte(i+1), int32(i))}
	}
	for range 60 {
		switch n := rng.IntN(100); {
		case n < 75:
			for range 1 + rng.IntN(20) {
				appendGroup(t, rng, s, logs, maxPayload)
			}
		case n < 80:
			m := logs[rng.IntN(len(logs))]
			if m.end() > m.start {
				o := m.start + 1 + model.Offset(rng.Int64N(int64(m.end()-m.start)))
				await(t, func(done func(error)) error { return s.Log(m.id).TrimTo(o, done) })
				m.start = o
			}
		case n < 82:
			i := rng.IntN(len(logs))
			await(t, func(done func(error)) error { return s.Log(logs[i].id).Drop(done) })
			id := logs[i].id
			id.Topic[15]++ // a topic that is made again has another id
			logs[i] = &modelLog{id: id}
		case n < 86:
			closeStore(t, s)
			s = open(t, o)
		case n < 92:
			clock.advance(gatherAge)
			work(t, s)
		case n < 96:
			clock.advance(checkpointAge)
			work(t, s)
		default:
			if err := s.journal.Rotate(); err != nil {
				t.Fatal(err)
			}
		}
		m := logs[rng.IntN(len(logs))]
		m.check(t, rng, s.Log(m.id))
	}
	for _, m := range logs {
		m.check(t, rng, s.Log(m.id))
	}
	closeStore(t, s)
}

// appendGroup appends one group over one or more logs and waits for it.
func appendGroup(t *testing.T, rng *rand.Rand, s *Store, logs []*modelLog, maxPayload int) {
	t.Helper()
	g := &storage.Group{}
	for _, i := range rng.Perm(len(logs))[:1+rng.IntN(min(3, len(logs)))] {
		m := logs[i]
		for range 1 + rng.IntN(3) {
			b := plain(1+rng.IntN(5), rng.IntN(maxPayload), byte(rng.Int()), rng.Int64N(1000)).at(m.end())
			m.batches = append(m.batches, b)
			g.Entries = append(g.Entries, entry(m.id, bytes.Clone(b)))
		}
	}
	await(t, func(done func(error)) error {
		g.Done = func(_ model.LSN, err error) { done(err) }
		err := s.Append(g)
		for model.ClassOf(err) == model.ClassOverloaded {
			work(t, s)
			err = s.Append(g)
		}
		return err
	})
}

func await(t *testing.T, start func(done func(error)) error) {
	t.Helper()
	ch := make(chan error, 1)
	err := start(func(err error) { ch <- err })
	if err == nil {
		err = <-ch
	}
	if err != nil {
		t.Fatal(err)
	}
}
