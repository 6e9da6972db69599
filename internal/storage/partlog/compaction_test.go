package partlog

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// keyed builds a batch of keyed records; a nil value is a tombstone.
func keyed(t testing.TB, at time.Time, base model.Offset, kvs map[string][]byte) model.Batch {
	t.Helper()
	w := records.NewBuilder(records.Plain(at))
	for k, v := range kvs {
		w.Add(0, []byte(k), v, nil)
	}
	b, err := w.Build(0)
	if err != nil {
		t.Fatal(err)
	}
	b.SetBaseOffset(base)
	b.SealCRC()
	return b
}

// table is what a compacted log must give: the newest value of each key.
type table map[string][]byte

func tableOf(t testing.TB, l *Log) (table, int) {
	t.Helper()
	got, n := table{}, 0
	for _, b := range readAll(t, l, l.Start(), 1<<16) {
		r, err := records.Open(b, 0)
		if err != nil {
			t.Fatal(err)
		}
		for {
			rec, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			n++
			if rec.Value == nil {
				delete(got, string(rec.Key))
			} else {
				got[string(rec.Key)] = bytes.Clone(rec.Value)
			}
		}
	}
	return got, n
}

func (want table) check(t testing.TB, l *Log) (n int) {
	t.Helper()
	got, n := tableOf(t, l)
	if len(got) != len(want) {
		t.Fatalf("%v: %d keys, want %d", l.ID(), len(got), len(want))
	}
	for k, v := range want {
		if !bytes.Equal(got[k], v) {
			t.Fatalf("%v: %s is %q, want %q", l.ID(), k, got[k], v)
		}
	}
	return n
}

func compactPolicy(s *Store, p model.PartitionID) {
	l := s.Log(p)
	l.SetPolicy(Policy{Compact: true, SegmentTime: time.Second, DeleteRetention: time.Hour})
	l.SetCompaction(func() CompactionView { return CompactionView{Stable: l.End()} })
}

func appendBatch(t *testing.T, s *Store, p model.PartitionID, b model.Batch) {
	t.Helper()
	await(t, func(done func(error)) error {
		return s.Append(groupOf(done, entry(p, b)))
	})
}

// TestCompactionKeepsTheTable compacts logs in the journal and in segments, over
// restarts, and compares the tables that they stand for.
func TestCompactionKeepsTheTable(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 6))
		fs, clock := vfs.NewMem(0), newFakeClock()
		o := testOptions(fs)
		o.Clock, o.JournalFileSize = clock.now, 32<<10
		s := open(t, o)
		parts := []model.PartitionID{part(1, 0), part(1, 1), part(2, 0)}
		want := map[model.PartitionID]table{}
		for _, p := range parts {
			want[p] = table{}
			compactPolicy(s, p)
		}
		appended := 0
		for range 40 {
			for range rng.IntN(30) {
				p := parts[rng.IntN(len(parts))]
				kvs := map[string][]byte{}
				for range 1 + rng.IntN(5) {
					k, v := fmt.Sprint("key", rng.IntN(30)), fmt.Append(nil, rng.Int())
					if kvs[k] = v; rng.IntN(6) == 0 {
						kvs[k] = nil
					}
				}
				appended += len(kvs)
				for k, v := range kvs {
					if want[p][k] = v; v == nil {
						delete(want[p], k)
					}
				}
				appendBatch(t, s, p, keyed(t, clock.now(), s.Log(p).End(), kvs))
				clock.advance(time.Duration(rng.Int64N(int64(time.Second))))
			}
			switch rng.IntN(8) {
			case 0:
				closeStore(t, s)
				s = open(t, o)
				for _, p := range parts {
					compactPolicy(s, p)
				}
			case 1:
				clock.advance(gatherAge)
				work(t, s)
			case 2:
				clock.advance(2 * time.Hour)
				work(t, s)
			default:
				clock.advance(compactionInterval)
				work(t, s)
			}
			p := parts[rng.IntN(len(parts))]
			want[p].check(t, s.Log(p))
		}
		clock.advance(2 * time.Hour)
		work(t, s)
		left := 0
		for _, p := range parts {
			left += want[p].check(t, s.Log(p))
		}
		if left > appended/2 && appended > 300 {
			t.Errorf("seed %d: %d of %d records are left", seed, left, appended)
		}
		closeStore(t, s)
	}
}

// A reader that comes to the end of what was compacted away still comes to the
// end of the log.
func TestReadOverWhatIsGone(t *testing.T) {
	clock := newFakeClock()
	o := testOptions(vfs.NewMem(0))
	o.Clock = clock.now
	s := open(t, o)
	defer closeStore(t, s)
	p := part(1, 0)
	compactPolicy(s, p)
	for range 10 {
		appendBatch(t, s, p, keyed(t, clock.now(), s.Log(p).End(), map[string][]byte{"k": nil}))
		clock.advance(time.Second)
	}
	for range 3 {
		clock.advance(2 * time.Hour)
		work(t, s)
	}
	l := s.Log(p)
	c, err := l.Read(context.Background(), 3, l.End(), 1, true)
	if err != nil || c.Next != l.End() || c.Bytes == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := batches(t, c); len(got) != 1 || got[0].NumRecords() != 0 || got[0].LastOffset() != 9 {
		t.Errorf("%d batches", len(got))
	}
	if b, err := l.SearchTime(context.Background(), 0, l.End()); err != nil || b != nil {
		t.Errorf("no record is left, a search for a time gives %v, %v", b, err)
	}
}

// What is damaged is not compacted, and what was not damaged stays readable.
func TestCompactionLeavesDamageAlone(t *testing.T) {
	fs, clock := vfs.NewMem(0), newFakeClock()
	o := testOptions(fs)
	o.Clock = clock.now
	s := open(t, o)
	defer closeStore(t, s)
	p := part(1, 0)
	for i := range 10 {
		appendBatch(t, s, p, keyed(t, clock.now(), s.Log(p).End(), map[string][]byte{"k": fmt.Append(nil, i)}))
	}
	if err := s.journal.Rotate(); err != nil {
		t.Fatal(err)
	}
	clock.advance(gatherAge)
	work(t, s)
	sp := s.Log(p).spans[0]
	blocks, err := s.blocks.Get(sp.seg.idx, sp.sec)
	if err != nil {
		t.Fatal(err)
	}
	flipBit(t, fs, sp.seg.data.Path(), blocks[0].Pos+100)
	before := s.Stats()
	compactPolicy(s, p)
	clock.advance(time.Hour)
	work(t, s)
	if _, err := s.Log(p).Read(context.Background(), 0, 10, 1, true); err == nil {
		t.Fatal("the flip hit no batch")
	}
	if st := s.Stats(); st.Compactions != before.Compactions || s.Log(p).End() != 10 || s.Log(p).Start() != 0 {
		t.Errorf("compacted all the same: %+v", st)
	}
}

// TestCompactionCrash crashes a store while it compacts: each recovered log stands
// for the table after some batch, at or after the last acknowledged one.
func TestCompactionCrash(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		fs, clock := vfs.NewMem(0), newFakeClock()
		o := testOptions(fs)
		o.Clock, o.JournalFileSize = clock.now, 16<<10
		var crashes []compactionCrash
		var mu sync.Mutex // crashes and history
		history := []table{{}}
		acked := 0
		crashRng := rand.New(rand.NewPCG(seed, 8))
		o.FS = hookFS{fs, func(string) {
			mu.Lock()
			defer mu.Unlock()
			if len(crashes) < 10 && crashRng.IntN(20) == 0 {
				crashes = append(crashes, compactionCrash{fs.Crash(crashRng.Uint64()), acked})
			}
		}}
		s := open(t, o)
		p := part(1, 0)
		compactPolicy(s, p)
		now := table{}
		for range 200 {
			kvs := map[string][]byte{}
			for range 1 + rng.IntN(4) {
				kvs[fmt.Sprint("key", rng.IntN(20))] = fmt.Append(nil, rng.Int())
			}
			maps.Copy(now, kvs)
			mu.Lock()
			history = append(history, maps.Clone(now))
			mu.Unlock()
			appendBatch(t, s, p, keyed(t, clock.now(), s.Log(p).End(), kvs))
			mu.Lock()
			acked++
			mu.Unlock()
			clock.advance(time.Duration(rng.Int64N(int64(2 * time.Second))))
			if rng.IntN(8) == 0 {
				clock.advance(compactionInterval)
				work(t, s)
			}
		}
		if s.Stats().Compactions == 0 {
			t.Error("nothing was compacted")
		}
		closeStore(t, s)
		for _, c := range crashes {
			o.FS = c.disk
			s := open(t, o)
			got, _ := tableOf(t, s.Log(p))
			same := func(want table) bool { return maps.EqualFunc(got, want, bytes.Equal) }
			if !slices.ContainsFunc(history[c.acked:], same) {
				t.Errorf("seed %d: the table is not one of those after batch %d", seed, c.acked)
			}
			closeStore(t, s)
		}
	}
}

type compactionCrash struct {
	disk  *vfs.Mem
	acked int
}
