package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

var (
	crashSeed   = flag.Uint64("seed", 0, "run only this crash round")
	crashRounds = flag.Uint64("rounds", 1000, "number of crash rounds")
)

// world is what one crash round knows: the groups that were appended, and what
// was promised for them.
type world struct {
	rng  *rand.Rand
	luck *rand.Rand // for the crash; under mu
	ids  func() model.FileID
	sync SyncMode

	mu      sync.Mutex
	groups  []*testGroup
	acked   int       // groups[:acked] were acknowledged
	safe    int       // groups[:safe] were synced, whatever the mode
	must    int       // groups[:must] must be found in the next life
	from    model.LSN // what is below was taken over and its files may be gone
	offsets map[model.PartitionID]model.Offset
	mem     *vfs.Mem
	crashed *vfs.Mem // the copy that the crash left
	ops     int      // operations until the crash
}

// testGroup is a group with what its entries said.
type testGroup struct {
	n       int
	lsn     model.LSN
	records [][]byte
}

// newGroup makes the next group: records of 24 bytes and more that name group
// and entry and carry a checksum of their own.
func (w *world) newGroup() (*testGroup, *storage.Group) {
	g := &testGroup{n: len(w.groups)}
	var sg storage.Group
	for i := range 1 + w.rng.IntN(4) {
		p := part(byte(w.rng.IntN(2)), int32(w.rng.IntN(2)))
		size := 24 + w.rng.IntN(200)
		if w.rng.IntN(10) == 0 {
			size += w.rng.IntN(3000)
		}
		rec := make([]byte, size)
		binary.BigEndian.PutUint32(rec, uint32(size))
		binary.BigEndian.PutUint32(rec[4:], uint32(g.n))
		binary.BigEndian.PutUint32(rec[8:], uint32(i))
		for j := 16; j < size; j++ {
			rec[j] = byte(w.rng.Uint32())
		}
		binary.BigEndian.PutUint32(rec[12:], crc32.ChecksumIEEE(rec[16:]))
		o := w.offsets[p]
		w.offsets[p]++
		sg.Entries = append(sg.Entries, storage.Entry{Kind: storage.EntryBatches, Part: p, Base: o, Last: o, MaxTimestamp: int64(g.n), Data: rec})
		g.records = append(g.records, rec)
	}
	w.groups = append(w.groups, g)
	sg.Done = func(lsn model.LSN, err error) {
		if err != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.crashed != nil {
			return // this is not the world that goes on
		}
		g.lsn = lsn
		w.acked = g.n + 1
	}
	return g, &sg
}

// watch takes the crash copy before the ops-th operation.
func (w *world) watch(vfs.Op, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ops--; w.ops != 0 {
		return
	}
	if w.luck.IntN(4) == 0 { // the process is killed, the machine goes on
		w.crashed, w.must = w.mem.Kill(), max(w.must, w.acked)
		return
	}
	w.crashed, w.must = w.mem.Crash(w.luck.Uint64()), w.safe
	if w.sync == SyncAlways {
		w.must = w.acked
	}
	w.acked = w.must
}

func (w *world) down() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crashed != nil
}

// life opens the journal on w.mem, checks what it finds, appends until the
// crash, and leaves the crashed copy in w.mem.
func (w *world) life(wrap func(*vfs.Fault)) error {
	w.crashed, w.ops = nil, 1+w.rng.IntN(120)
	fs := vfs.NewFault(w.mem)
	fs.Watch = w.watch
	if wrap != nil {
		wrap(fs)
	}
	var sealed []Sealed
	o := Options{
		FS: fs, Dir: "d", FileSize: 16 << 10, NextFileID: w.ids, Sync: w.sync, PoolFiles: 2,
		OnSeal: func(s Sealed) { w.mu.Lock(); defer w.mu.Unlock(); sealed = append(sealed, s) },
	}
	check := checker{w: w}
	j, err := Open(context.Background(), o, w.from, check.replay)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer j.Close() // when a check fails; a second Close does nothing
	if !w.down() {  // else what it did after the crash is in another world
		if err := check.end(j); err != nil {
			return err
		}
	}
	for !w.down() {
		w.mu.Lock()
		_, g := w.newGroup()
		w.mu.Unlock()
		if err := j.Append(g); err != nil {
			return fmt.Errorf("append: %w", err)
		}
		if err := w.disturb(j, &sealed); err != nil {
			return err
		}
	}
	if err := j.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	w.mem = w.crashed
	return nil
}

// disturb does now and then what partlog does: wait, rotate, let files go.
func (w *world) disturb(j *Journal, sealed *[]Sealed) error {
	switch w.rng.IntN(12) {
	case 0:
		if err := j.Barrier(context.Background()); err != nil {
			return err
		}
		w.mu.Lock()
		if w.crashed == nil {
			w.safe = len(w.groups)
		}
		w.mu.Unlock()
	case 1:
		return j.Rotate()
	case 2, 3:
		w.mu.Lock()
		if len(*sealed) == 0 || w.crashed != nil {
			w.mu.Unlock()
			return nil
		}
		s := (*sealed)[0]
		*sealed = (*sealed)[1:]
		w.from = max(w.from, s.LastLSN+1)
		w.mu.Unlock()
		return j.Recycle(s.ID)
	}
	return nil
}

// checker compares what is replayed with what was appended.
type checker struct {
	w       *world
	first   int // the first group that may be replayed
	got     map[int]int
	lsn     map[int]model.LSN
	last    map[model.PartitionID]int
	started bool
}

func (c *checker) start() {
	c.started = true
	c.got, c.lsn, c.last = make(map[int]int), make(map[int]model.LSN), make(map[model.PartitionID]int)
	for c.first < len(c.w.groups) && c.w.groups[c.first].lsn != 0 && c.w.groups[c.first].lsn < c.w.from {
		c.first++
	}
}

func (c *checker) replay(l storage.Located) error {
	if !c.started {
		c.start()
	}
	for data := l.Entry.Data; len(data) > 0; {
		size := binary.BigEndian.Uint32(data)
		if len(data) < 24 || int(size) > len(data) {
			return errors.New("replayed bytes that were never written")
		}
		n, i := int(binary.BigEndian.Uint32(data[4:])), int(binary.BigEndian.Uint32(data[8:]))
		if n >= len(c.w.groups) || i >= len(c.w.groups[n].records) || !bytes.Equal(data[:size], c.w.groups[n].records[i]) {
			return fmt.Errorf("group %d entry %d was altered", n, i)
		}
		if at := n<<8 | i; at <= c.last[l.Entry.Part] && c.last[l.Entry.Part] != 0 {
			return fmt.Errorf("group %d entry %d comes after group %d", n, i, c.last[l.Entry.Part]>>8)
		} else {
			c.last[l.Entry.Part] = at
		}
		c.got[n]++
		c.lsn[n] = l.LSN
		data = data[size:]
	}
	return nil
}

// end settles what the recovered journal holds: all that is safe, and of the
// rest a prefix, whole groups only.
func (c *checker) end(j *Journal) error {
	if !c.started {
		c.start()
	}
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(j.Damage()) > 0 {
		return fmt.Errorf("damage where there is none: %v", &j.Damage()[0])
	}
	n := c.first
	for ; n < len(w.groups) && c.got[n] > 0; n++ {
		if c.got[n] != len(w.groups[n].records) {
			return fmt.Errorf("group %d was recovered in part: %d of %d entries", n, c.got[n], len(w.groups[n].records))
		}
		w.groups[n].lsn = c.lsn[n]
	}
	if len(c.got) != n-c.first {
		return fmt.Errorf("recovered groups have a gap after %d", n)
	}
	if n < w.must {
		return fmt.Errorf("group %d was promised and is lost (%d promised, first %d)", n, w.must, c.first)
	}
	w.groups = w.groups[:n]
	w.acked, w.safe, w.must = n, n, n
	w.offsets = make(map[model.PartitionID]model.Offset)
	return nil
}

// crashRound lives through several crashes.
func crashRound(seed uint64, mode SyncMode, wrap func(*vfs.Fault)) error {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), luck: rand.New(rand.NewPCG(seed, 2)), ids: ids(), mem: vfs.NewMem(0), sync: mode, from: 1,
		offsets: make(map[model.PartitionID]model.Offset),
	}
	for i := range 4 {
		if err := w.life(wrap); err != nil {
			return fmt.Errorf("life %d: %w", i, err)
		}
	}
	return nil
}

func TestCrash(t *testing.T) {
	for _, mode := range []SyncMode{SyncAlways, SyncNone, SyncMode(1)} {
		t.Run(mode.String(), func(t *testing.T) {
			if *crashSeed != 0 {
				if err := crashRound(*crashSeed, mode, nil); err != nil {
					t.Fatal(err)
				}
				return
			}
			rounds := *crashRounds
			if mode != SyncAlways {
				rounds /= 4
			}
			for seed := uint64(1); seed <= rounds; seed++ {
				if err := crashRound(seed, mode, nil); err != nil {
					t.Fatalf("%v\ngo test ./internal/storage/journal -run 'TestCrash/%v' -seed=%d", err, mode, seed)
				}
			}
		})
	}
}

// TestCrashMutants shows that the crash test sees what each guard is for: without
// it, some round must lose or invent something.
func TestCrashMutants(t *testing.T) {
	mutants := map[string]vfs.Rule{
		"no directory sync": {Op: vfs.OpSyncDir},
		"no data sync":      {Op: vfs.OpSync},
	}
	for name, rule := range mutants {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 2000; seed++ {
				if err := crashRound(seed, SyncAlways, func(f *vfs.Fault) { f.Inject(rule) }); err != nil {
					t.Logf("seen in round %d: %v", seed, err)
					return
				}
			}
			t.Fatal("the crash test does not miss it")
		})
	}
}
