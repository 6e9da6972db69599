package partlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

var (
	crashRounds = flag.Int("rounds", 60, "rounds of the crash test")
	crashSeed   = flag.Uint64("seed", 0, "run only this seed of the crash test")
)

// history is what one log was asked for and what was acknowledged of it.
type history struct {
	submitted []model.Batch
	acked     int          // batches
	trimAsked model.Offset // largest start that was asked for
	trimAcked model.Offset
	retained  bool // retention trims it as well
	dropAsked bool
	dropAcked bool
}

func (h *history) end() model.Offset { return endOf(h.submitted) }

func endOf(bs []model.Batch) model.Offset {
	if len(bs) == 0 {
		return 0
	}
	return bs[len(bs)-1].LastOffset() + 1
}

// loadSize makes a round one of small batches, or of bulk that is adopted.
type loadSize struct {
	least int // bytes of the smallest payload; the largest is twice that
	file  int64
}

var loadSizes = []loadSize{{20, 16 << 10}, {200, 16 << 10}, {1000, 64 << 10}, {9 << 10, 256 << 10}}

// crashWorld drives a store and remembers what it promised.
type crashWorld struct {
	t     *testing.T
	rng   *rand.Rand
	clock *fakeClock
	size  loadSize

	starts func(model.PartitionID) model.Offset
	mu     sync.Mutex
	logs   map[model.PartitionID]*history
}

// promises copies the history as it is now; what is acknowledged later need not
// have survived a crash that comes after this call.
func (w *crashWorld) promises() map[model.PartitionID]*history {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[model.PartitionID]*history, len(w.logs))
	for id, h := range w.logs {
		c := *h
		c.trimAcked = max(c.trimAcked, w.starts(id)) // what a reader could see
		out[id] = &c
	}
	return out
}

// asked adds to promises what was submitted until after the crash: it may be there.
func (w *crashWorld) asked(promised map[model.PartitionID]*history) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, h := range w.logs {
		if p := promised[id]; p != nil {
			p.submitted, p.trimAsked, p.dropAsked = h.submitted, h.trimAsked, h.dropAsked
		} else {
			promised[id] = &history{submitted: h.submitted, trimAsked: h.trimAsked, retained: h.retained, dropAsked: h.dropAsked}
		}
	}
}

// step submits one random thing, without waiting for it.
func (w *crashWorld) step(s *Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(w.logs), model.PartitionID.Compare)
	live := slices.DeleteFunc(ids, func(id model.PartitionID) bool { return w.logs[id].dropAsked })
	switch n := w.rng.IntN(100); {
	case len(live) == 0 || n < 2:
		id := part(byte(len(w.logs)+1), int32(len(w.logs)))
		h := &history{retained: w.rng.IntN(3) == 0}
		w.logs[id] = h
		if h.retained {
			s.Log(id).SetPolicy(Policy{Delete: true, RetentionBytes: int64(4 * w.size.least)})
		}
		// As a partition does it: what is in line counts, durable or not.
		s.Log(id).SetSnapshotter(func() ([]byte, model.Offset) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return binary.AppendUvarint(nil, uint64(len(h.submitted))), h.end()
		})
	case n < 5:
		w.trim(s, live[w.rng.IntN(len(live))])
	case n < 6 && len(live) > 1:
		w.drop(s, live[w.rng.IntN(len(live))])
	default:
		w.append(s, live)
	}
}

func (w *crashWorld) append(s *Store, live []model.PartitionID) {
	g := &storage.Group{}
	ends := make(map[*history]int)
	for _, i := range w.rng.Perm(len(live))[:1+w.rng.IntN(min(3, len(live)))] {
		h := w.logs[live[i]]
		tb := plain(1+w.rng.IntN(3), w.size.least+w.rng.IntN(w.size.least+1), byte(w.rng.Int()), w.rng.Int64N(1000))
		if w.rng.IntN(3) == 0 {
			tb.producer = 7
		}
		b := tb.at(h.end())
		h.submitted = append(h.submitted, b)
		ends[h] = len(h.submitted)
		g.Entries = append(g.Entries, entry(live[i], bytes.Clone(b)))
	}
	g.Done = func(_ model.LSN, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for h, n := range ends {
			if err == nil {
				h.acked = max(h.acked, n)
			}
		}
	}
	if err := s.Append(g); model.ClassOf(err) == model.ClassOverloaded {
		for h := range ends {
			h.submitted = h.submitted[:len(h.submitted)-1]
		}
	} else if err != nil {
		w.t.Error(err)
	}
}

func (w *crashWorld) trim(s *Store, id model.PartitionID) {
	h, end := w.logs[id], s.Log(id).End()
	from := max(h.trimAsked, s.Log(id).Start())
	if end <= from {
		return
	}
	o := from + 1 + model.Offset(w.rng.Int64N(int64(end-from)))
	h.trimAsked = o
	err := s.Log(id).TrimTo(o, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			h.trimAcked = max(h.trimAcked, o)
		}
	})
	if err != nil {
		w.t.Error(err)
	}
}

func (w *crashWorld) drop(s *Store, id model.PartitionID) {
	h := w.logs[id]
	h.dropAsked = true
	err := s.Log(id).Drop(func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		h.dropAcked = err == nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// verify opens a crashed disk and compares it with what was promised.
func verify(o Options, promised map[model.PartitionID]*history) error {
	s, err := Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("open after the crash: %w", err)
	}
	defer s.Close()
	for id, h := range promised {
		if err := verifyLog(s.Log(id), h); err != nil {
			return fmt.Errorf("%v: %w", id, err)
		}
	}
	return nil
}

func verifyLog(l *Log, h *history) error {
	rec := l.Recovered()
	if l.End() == 0 && h.dropAsked {
		return nil
	}
	if h.dropAcked {
		return fmt.Errorf("dropped, and there again with %d to %d", l.Start(), l.End())
	}
	if l.Start() < h.trimAcked || l.Start() > h.trimAsked && !h.retained {
		return fmt.Errorf("start is %d, acknowledged %d, asked %d", l.Start(), h.trimAcked, h.trimAsked)
	}
	if l.End() < endOf(h.submitted[:h.acked]) {
		return fmt.Errorf("end is %d, acknowledged up to %d", l.End(), endOf(h.submitted[:h.acked]))
	}
	if err := verifyRecovered(rec, l, h); err != nil {
		return err
	}
	at := l.Start()
	for _, want := range h.submitted {
		if want.LastOffset() < l.Start() {
			continue
		}
		if want.BaseOffset() >= l.End() {
			break
		}
		c, err := l.Read(context.Background(), at, l.End(), 1, true)
		if err != nil {
			return fmt.Errorf("read at %d: %w", at, err)
		}
		if got := slices.Concat(c.Data...); !bytes.Equal(got, want) {
			return fmt.Errorf("the batch at %d is not the one that was appended", at)
		}
		at = c.Next
	}
	if at != l.End() {
		return fmt.Errorf("ends at %d after the batch before %d", l.End(), at)
	}
	return nil
}

// verifyRecovered checks that snapshot and headers together tell of every batch
// with a producer.
func verifyRecovered(rec Recovered, l *Log, h *history) error {
	if rec.UpTo > l.End() {
		return fmt.Errorf("the snapshot covers %d, the log ends at %d", rec.UpTo, l.End())
	}
	if n, _ := binary.Uvarint(rec.Snapshot); rec.UpTo != endOf(h.submitted[:n]) {
		return fmt.Errorf("the snapshot of %d batches covers up to %d", n, rec.UpTo)
	}
	since := make(map[model.Offset]bool)
	for _, b := range rec.Since {
		since[b.BaseOffset()] = true
	}
	for _, b := range h.submitted {
		if b.BaseOffset() >= max(rec.UpTo, l.Start()) && b.BaseOffset() < l.End() && b.ProducerID() >= 0 && !since[b.BaseOffset()] {
			return fmt.Errorf("snapshot up to %d and %d headers leave out the batch at %d", rec.UpTo, len(rec.Since), b.BaseOffset())
		}
	}
	return nil
}

// TestCrash crashes a store under load, with flush, adoption, merge, checkpoints
// and retention going on, and looks at what is left. Each crashed disk is opened,
// crashed again while it is being opened, and opened again.
func TestCrash(t *testing.T) {
	if *crashSeed != 0 {
		crashRound(t, *crashSeed)
		return
	}
	// Rounds wait for their stores' goroutines more than they compute.
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for seed := range seeds {
				crashRound(t, seed)
			}
		})
	}
	for seed := uint64(1); seed <= uint64(*crashRounds) && !t.Failed(); seed++ {
		seeds <- seed
	}
	close(seeds)
	wg.Wait()
}

func crashRound(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	fs := vfs.NewMem(0)
	w := &crashWorld{
		t: t, rng: rng, clock: newFakeClock(), size: loadSizes[rng.IntN(len(loadSizes))],
		logs: make(map[model.PartitionID]*history),
	}
	o := testOptions(fs)
	o.Clock, o.JournalFileSize = w.clock.now, w.size.file
	o.MemoryBudget = 1 << (8 + rng.IntN(10))
	o.JournalCap = 1 << (16 + rng.IntN(4))
	points := &crashPoints{w: w, fs: fs, rng: rand.New(rand.NewPCG(seed, 3))}
	o.FS = hookFS{fs, points.maybe}
	var s *Store
	w.starts = func(id model.PartitionID) model.Offset { return s.Log(id).Start() }
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Error(err)
		return
	}
	for range 5 + rng.IntN(600) {
		w.step(s)
		if rng.IntN(20) == 0 {
			w.clock.advance(gatherAge)
			s.Sweep()
		}
		if rng.IntN(30) == 0 {
			if err := s.Barrier(context.Background()); err != nil {
				t.Error(err)
				return
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	points.crash()
	for _, c := range points.crashes {
		o.FS = c.disk
		if err := verify(o, c.promised); err != nil {
			t.Errorf("%v\nto repeat: go test ./internal/storage/partlog -run TestCrash -seed=%d", err, seed)
			return
		}
		// The recovered disk, crashed once more, must still hold it all.
		o.FS = c.disk.Crash(seed)
		if err := verify(o, c.promised); err != nil {
			t.Errorf("second crash: %v\nto repeat: go test ./internal/storage/partlog -run TestCrash -seed=%d", err, seed)
			return
		}
	}
}

// crashPoints takes copies of the disk, as a crash would leave it, just before
// some of the operations that matter.
type crashPoints struct {
	w  *crashWorld
	fs *vfs.Mem

	mu      sync.Mutex
	rng     *rand.Rand
	crashes []crashed
}

type crashed struct {
	disk     *vfs.Mem
	promised map[model.PartitionID]*history
}

// crashesPerRound bounds the copies, and so a round's time and memory.
const crashesPerRound = 12

func (p *crashPoints) maybe(name string) {
	odds, copies := 40, 1
	if path.Base(name) == checkpoint.Names[1] {
		odds, copies = 4, 3 // where a mistake in the order of things would show
	}
	p.mu.Lock()
	hit := len(p.crashes) < crashesPerRound && p.rng.IntN(odds) == 0
	p.mu.Unlock()
	for ; hit && copies > 0; copies-- {
		p.crash()
	}
}

func (p *crashPoints) crash() {
	promised := p.w.promises()
	p.mu.Lock()
	disk := p.fs.Crash(p.rng.Uint64())
	p.mu.Unlock()
	p.w.asked(promised)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashes = append(p.crashes, crashed{disk, promised})
}
