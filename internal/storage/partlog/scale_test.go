package partlog

import (
	"context"
	"runtime"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestManyPartitions holds 10,000 partitions to their bounds of memory and file
// handles, in the journal, in segments, and after a restart.
func TestManyPartitions(t *testing.T) {
	const partitions, rounds = 10_000, 3
	clock := newFakeClock()
	o := testOptions(vfs.OS{})
	o.Dir, o.Clock = t.TempDir(), clock.now
	o.JournalFileSize, o.JournalCap, o.MemoryBudget, o.OpenFiles = 4<<20, 1<<30, 1<<20, 4
	o.Sync = -1 // none: this is about memory
	before := heap()
	s := open(t, o)
	appendRound := func() {
		t.Helper()
		for i := 0; i < partitions; i += 100 {
			var entries []storage.Entry
			for k := range 100 {
				p := part(1, int32(i+k))
				entries = append(entries, entry(p, plain(1, 200, byte(i), 1).at(s.Log(p).End())))
			}
			await(t, func(done func(error)) error { return s.Append(groupOf(done, entries...)) })
		}
	}
	check := func(when string) {
		t.Helper()
		used := heap() - before
		t.Logf("%s: %d bytes of heap, %+v", when, used, s.Stats())
		if used > 60<<20 {
			t.Errorf("%s: %d bytes of heap", when, used)
		}
		for i := 0; i < partitions; i += 7 {
			l := s.Log(part(1, int32(i)))
			if _, err := l.Read(context.Background(), model.Offset(i)%max(l.End(), 1), l.End(), 1, true); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Stats().OpenFiles; n > o.OpenFiles {
			t.Errorf("%s: %d open files", when, n)
		}
	}
	for range rounds {
		appendRound()
	}
	check("in the journal")
	for range 10 { // many segments: more than may be open
		appendRound()
		if err := s.journal.Rotate(); err != nil {
			t.Fatal(err)
		}
		clock.advance(gatherAge)
		work(t, s)
	}
	check("in segments")
	closeStore(t, s)
	s = open(t, o)
	defer closeStore(t, s)
	if n := s.Stats().Partitions; n != partitions {
		t.Errorf("%d partitions after a restart", n)
	}
	check("after a restart")
}
