package partlog

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// tryPut appends one batch and gives the error of the refusal, or of the write.
func tryPut(s *Store, p model.PartitionID, tb testBatch) error {
	done := make(chan error, 1)
	err := s.Append(&storage.Group{
		Entries: []storage.Entry{entry(p, tb.at(s.Log(p).End()))},
		Done:    func(_ model.LSN, err error) { done <- err },
	})
	if err != nil {
		return err
	}
	return <-done
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// A full disk refuses new data, serves what is there, takes deletions, and goes on
// without a restart when there is room.
func TestDiskFull(t *testing.T) {
	fs, clock := vfs.NewMem(8<<20), newFakeClock()
	o := testOptions(fs)
	o.Clock, o.JournalFileSize = clock.now, 64<<10
	o.Limits = journal.SpaceLimits{Soft: 2 << 20, Hard: 1 << 20}
	var soft atomic.Int64
	o.OnSpace = func(st journal.SpaceState) {
		if st != journal.SpaceOK {
			soft.Add(1)
		}
	}
	s := open(t, o)
	defer closeStore(t, s)
	p, q := part(1, 0), part(2, 0)
	put(t, s, q, plain(1, 100, 1, 1))
	var err error
	for i := 0; err == nil; i++ {
		if i > 20_000 {
			t.Fatal("the disk does not fill up")
		}
		err = tryPut(s, p, plain(1, 4000, byte(i), 1))
		for model.ClassOf(err) == model.ClassOverloaded {
			work(t, s)
			err = tryPut(s, p, plain(1, 4000, byte(i), 1))
		}
	}
	if model.ClassOf(err) != model.ClassDiskFull {
		t.Fatal(err)
	}
	if soft.Load() == 0 {
		t.Error("nobody was told")
	}
	n := len(readAll(t, s.Log(p), 0, 1<<16))
	await(t, s.Log(p).Drop)
	eventually(t, "an append after the deletion", func() bool {
		clock.advance(checkpointPause)
		s.keeper.signal()
		return tryPut(s, q, plain(1, 100, 2, 2)) == nil
	})
	if got := readAll(t, s.Log(q), 0, 1<<16); len(got) < 2 || n < 500 {
		t.Errorf("%d and %d batches", len(got), n)
	}
}

// Below the soft limit retention runs at once.
func TestSoftLimitSweeps(t *testing.T) {
	fs, clock := vfs.NewMem(8<<20), newFakeClock()
	o := testOptions(fs)
	o.Clock, o.JournalFileSize = clock.now, 64<<10
	o.Limits = journal.SpaceLimits{Soft: 4 << 20, Hard: 1}
	s := open(t, o)
	defer closeStore(t, s)
	p := part(1, 0)
	s.Log(p).SetPolicy(Policy{Delete: true, RetentionBytes: 100_000})
	work(t, s)
	started := make(chan model.Offset, 100)
	s.Log(p).SetOnStart(func(o model.Offset) { started <- o })
	for i := range 1500 {
		// The poll for free space may come after the disk is full, and appends
		// without a pause may outrun the keeper.
		err := tryPut(s, p, plain(1, 4000, byte(i), 1))
		if class := model.ClassOf(err); err != nil && class != model.ClassDiskFull && class != model.ClassOverloaded {
			t.Fatal(err)
		}
		if err != nil || len(started) > 0 {
			break
		}
	}
	select {
	case o := <-started:
		if s.Log(p).Start() < o {
			t.Errorf("told of %d, start is %d", o, s.Log(p).Start())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("retention did not run")
	}
}

// A start on a full disk works, and the data is there.
func TestOpenOnFullDisk(t *testing.T) {
	fs := vfs.NewMem(0)
	o := testOptions(fs)
	s := open(t, o)
	p := part(1, 0)
	for i := range 100 {
		put(t, s, p, plain(1, 4000, byte(i), 1))
	}
	closeStore(t, s)
	sp, err := fs.Space(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	fs.SetTotal(int64(sp.Total - sp.Free)) // nothing is free
	s = open(t, o)
	if got := readAll(t, s.Log(p), 0, 1<<16); len(got) != 100 {
		t.Errorf("%d batches", len(got))
	}
	// A journal file that was prepared before may take it.
	if err := tryPut(s, p, plain(1, 100, 1, 1)); err != nil && model.ClassOf(err) != model.ClassDiskFull {
		t.Errorf("append on a full disk: %v", err)
	}
	await(t, s.Log(p).Drop)
	if err := s.Barrier(context.Background()); err != nil {
		t.Error(err)
	}
	closeStore(t, s)
}

// When the background work is stuck the journal does not grow without bound.
func TestOverloaded(t *testing.T) {
	o := testOptions(vfs.NewMem(0))
	o.JournalFileSize, o.JournalCap = 32<<10, 64<<10
	s := open(t, o)
	defer closeStore(t, s)
	s.keeper.round.Lock() // the keeper stands still
	p := part(1, 0)
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = tryPut(s, p, plain(1, 4000, byte(i), 1))
	}
	s.keeper.round.Unlock()
	if model.ClassOf(err) != model.ClassOverloaded {
		t.Fatal(err)
	}
	if err := s.Log(p).TrimTo(1, func(error) {}); err != nil {
		t.Errorf("what frees room is refused: %v", err)
	}
	eventually(t, "an append once the work is done", func() bool { return tryPut(s, p, plain(1, 10, 1, 1)) == nil })
}

// What was dropped before its journal file was adopted wastes no room for ever: the
// file is written anew without it.
func TestDroppedBeforeAdoptionGivesItsRoomBack(t *testing.T) {
	fs, clock := vfs.NewMem(0), newFakeClock()
	o := testOptions(fs)
	o.Clock, o.JournalFileSize = clock.now, 4<<20
	s := open(t, o)
	defer closeStore(t, s)
	keep, gone, next := part(1, 0), part(2, 0), part(3, 0)
	put(t, s, keep, plain(1, 100, 1, 1))
	for i := range 60 {
		put(t, s, gone, plain(1, 50_000, byte(i), 1))
	}
	dropped := make(chan error, 1)
	if err := s.Log(gone).Drop(func(err error) { dropped <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-dropped; err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		put(t, s, next, plain(1, 50_000, byte(i), 1))
	}
	clock.advance(time.Hour)
	work(t, s)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.segments) == 0 {
		t.Fatal("nothing was settled")
	}
	for _, seg := range s.segments {
		if seg.mostlyDead() {
			t.Errorf("file %v has %d bytes, of which %d are in use", seg.id(), seg.size, seg.live.Load())
		}
	}
}
