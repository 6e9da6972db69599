package partition

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// rig is some partitions over a disk in memory.
type rig struct {
	t     *testing.T
	fs    *vfs.Mem
	gate  *gate
	store *partlog.Store
	parts []*Partition
}

// gate holds syncs back while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // nil: open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

// pass is the delay of a slow disk: as long as the gate is shut.
func (g *gate) pass() time.Duration {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
	return 0
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, fs: vfs.NewMem(1 << 30)}
	r.start()
	t.Cleanup(func() { r.gate.lift(); _ = r.store.Close() })
	return r
}

func (r *rig) start() {
	r.t.Helper()
	r.gate = &gate{}
	var err error
	r.store, err = partlog.Open(context.Background(), partlog.Options{
		FS: vfs.NewSlow(r.fs, r.gate.pass), Dir: "data", JournalFileSize: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.parts = nil
	for i := range int32(3) {
		p, err := Open(r.store, model.PartitionID{Topic: model.TopicID{1}, Index: i}, Settings{}, time.Now)
		if err != nil {
			r.t.Fatal(err)
		}
		r.parts = append(r.parts, p)
	}
}

func (r *rig) crash() {
	fs := r.fs.Crash(7)
	r.gate.lift()
	_ = r.store.Close()
	r.fs = fs
	r.start()
}

// reply is the outcome of a group.
type reply struct {
	res []Result
	err error
}

func (r *rig) submit(items ...Append) chan reply {
	r.t.Helper()
	ch := make(chan reply, 1)
	if err := Submit(items, func(res []Result, err error) { ch <- reply{res, err} }); err != nil {
		ch <- reply{nil, err}
	}
	return ch
}

func (r *rig) to(i int, b model.Batch) Append { return Append{To: r.parts[i], Batch: b} }

func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	r := newRig(t)
	w := NewWaiter()
	r.parts[0].Watch(w)
	r.gate.shut()
	ch := r.submit(r.to(0, data(-1, -1, -1, 3, false)))
	if m := r.parts[0].Watermarks(); m.HighWatermark != 0 {
		t.Fatalf("high watermark %d before the sync", m.HighWatermark)
	}
	if res, err := r.parts[0].Read(context.Background(), 0, 1<<20, true, ReadUncommitted); err != nil || res.Bytes != 0 {
		t.Fatalf("%d bytes are readable before the sync (%v)", res.Bytes, err)
	}
	select {
	case got := <-ch:
		t.Fatalf("answered before the sync: %+v", got)
	default:
	}
	r.gate.lift()
	if got := <-ch; got.err != nil || got.res[0].Base != 0 {
		t.Fatalf("%+v", got)
	}
	<-w.C
	if res, err := r.parts[0].Read(context.Background(), 1, 1<<20, true, ReadUncommitted); err != nil || res.Next != 3 {
		t.Fatalf("%+v %v", res, err)
	}
}

// A retry is answered only when its original is durable, with the original offset,
// and is not appended again: before the sync, after it, and after a restart (K13).
func TestARetryWaitsForItsOriginal(t *testing.T) {
	r := newRig(t)
	r.gate.shut()
	first := r.submit(r.to(0, data(7, 0, 0, 5, false)))
	again := r.submit(r.to(0, data(7, 0, 0, 5, false)))
	select {
	case got := <-again:
		t.Fatalf("the retry was answered before the original is durable: %+v", got)
	default:
	}
	r.gate.lift()
	if a, b := <-first, <-again; a.err != nil || b.err != nil || a.res[0].Duplicate || !b.res[0].Duplicate || b.res[0].Base != 0 {
		t.Fatalf("%+v and %+v", a, b)
	}
	for range 2 {
		if got := <-r.submit(r.to(0, data(7, 0, 0, 5, false))); got.err != nil || !got.res[0].Duplicate || got.res[0].Base != 0 {
			t.Fatalf("%+v", got)
		}
		if m := r.parts[0].Watermarks(); m.HighWatermark != 5 {
			t.Fatalf("%d records, want 5", m.HighWatermark)
		}
		r.crash()
	}
}

// One refused item refuses the group; what the others would have got is not taken.
func TestAGroupIsAllOrNothing(t *testing.T) {
	r := newRig(t)
	<-r.submit(r.to(1, data(7, 3, 0, 1, false)))
	got := <-r.submit(r.to(0, data(-1, -1, -1, 2, false)), r.to(1, data(7, 2, 1, 1, false)), r.to(2, data(9, 0, 0, 1, false)))
	item := (*ItemError)(nil)
	if !errors.As(got.err, &item) || item.Index != 1 || model.ClassOf(got.err) != model.ClassFenced {
		t.Fatalf("%v", got.err)
	}
	for i, want := range []model.Offset{0, 1, 0} {
		if m := r.parts[i].Watermarks(); m.HighWatermark != want {
			t.Errorf("partition %d ends at %d, want %d", i, m.HighWatermark, want)
		}
	}
	// The producer of the third item was not remembered either: 0 is still its first.
	if got := <-r.submit(r.to(2, data(9, 0, 0, 1, false))); got.err != nil || got.res[0].Duplicate {
		t.Fatalf("%+v", got)
	}
	if got := <-r.submit(r.to(0, data(-1, -1, -1, 2, false)), r.to(0, data(-1, -1, -1, 3, false)), r.to(2, data(-1, -1, -1, 1, false))); got.err != nil ||
		got.res[0].Base != 0 || got.res[1].Base != 2 || got.res[2].Base != 1 {
		t.Fatalf("%+v", got)
	}
}

// A group over several partitions is there whole or not at all after a crash.
func TestAGroupSurvivesACrashWhole(t *testing.T) {
	r := newRig(t)
	for range 20 {
		var last []chan reply
		for range 5 {
			last = append(last, r.submit(r.to(0, data(-1, -1, -1, 1, false)), r.to(1, data(-1, -1, -1, 1, false)), r.to(2, data(-1, -1, -1, 1, false))))
		}
		<-last[2]
		r.crash()
		a, b, c := r.parts[0].Watermarks().HighWatermark, r.parts[1].Watermarks().HighWatermark, r.parts[2].Watermarks().HighWatermark
		if a != b || b != c {
			t.Fatalf("after the crash the partitions end at %d, %d and %d", a, b, c)
		}
	}
}

func TestDeletedPartitionsRefuse(t *testing.T) {
	r := newRig(t)
	<-r.submit(r.to(0, data(-1, -1, -1, 1, false)))
	w := NewWaiter()
	r.parts[0].Watch(w)
	ch := make(chan error, 1)
	if err := r.parts[0].Delete(func(err error) { ch <- err }); err != nil {
		t.Fatal(err)
	}
	<-w.C
	if err := <-ch; err != nil {
		t.Fatal(err)
	}
	if got := <-r.submit(r.to(0, data(-1, -1, -1, 1, false))); model.ClassOf(got.err) != model.ClassNotFound {
		t.Errorf("append: %v", got.err)
	}
	if _, err := r.parts[0].Read(context.Background(), 0, 1, true, ReadUncommitted); model.ClassOf(err) != model.ClassNotFound {
		t.Errorf("read: %v", err)
	}
}

// The aborted list is cut to what a fetch returns, however many there are.
func BenchmarkReadWithAbortedTransactions(b *testing.B) {
	s := newState()
	at := model.Offset(0)
	for i := range int64(100_000) {
		d, m := data(i, 0, 0, 1, true), marker(i, 0, false)
		d.SetBaseOffset(at)
		m.SetBaseOffset(at + 1)
		if err := errors.Join(s.replay(d), s.replay(m)); err != nil {
			b.Fatal(err)
		}
		s.txns.durable(at + 2)
		at += 2
	}
	for b.Loop() {
		if got := s.txns.abortedIn(100_000, 100_020); len(got) != 10 {
			b.Fatal(len(got))
		}
	}
}
