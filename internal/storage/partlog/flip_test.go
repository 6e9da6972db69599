package partlog

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// errorCounter counts what is said loudly.
type errorCounter struct {
	slog.Handler
	n *atomic.Int64
}

func (c errorCounter) Enabled(context.Context, slog.Level) bool { return true }

func (c errorCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		c.n.Add(1)
	}
	return nil
}

// flipDisk is a closed store with flushed, adopted and merged segments and a
// journal, and what it holds.
func flipDisk(t *testing.T) (*vfs.Mem, Options, []*modelLog) {
	rng := rand.New(rand.NewPCG(1, 4))
	fs, clock := vfs.NewMem(0), newFakeClock()
	o := testOptions(fs)
	o.Clock, o.JournalFileSize = clock.now, 32<<10
	s := open(t, o)
	logs := []*modelLog{{id: part(1, 0)}, {id: part(2, 0)}, {id: part(3, 0)}}
	for range 40 {
		appendGroup(t, rng, s, logs, 300)
	}
	clock.advance(gatherAge)
	work(t, s)
	bulk := []*modelLog{{id: part(4, 0)}}
	for range 8 {
		appendGroup(t, rng, s, bulk, 9<<10)
	}
	if err := s.journal.Rotate(); err != nil {
		t.Fatal(err)
	}
	clock.advance(gatherAge)
	work(t, s)
	for range 20 {
		appendGroup(t, rng, s, logs, 300)
	}
	closeStore(t, s)
	return fs, o, append(logs, bulk...)
}

// TestEveryFlip flips bits all over every file. Whatever is hit, the store opens,
// what it gives is right, what it cannot give it says so, and a batch of one
// partition that is hit leaves the others whole.
func TestEveryFlip(t *testing.T) {
	fs, o, logs := flipDisk(t)
	names, err := fs.List(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 5))
	flips, hits := 0, 0
	for _, name := range names {
		name = path.Join(o.Dir, name)
		size, err := fs.Size(name)
		if err != nil {
			t.Fatal(err)
		}
		for pos := int64(0); pos < size; pos += 1 + rng.Int64N(max(size/60, 1)) {
			flips++
			if flipOnce(t, fs, o, logs, name, pos) {
				hits++
			}
		}
	}
	if hits < flips/4 {
		t.Errorf("only %d of %d flips were noticed: they do not hit what matters", hits, flips)
	}
}

// flipOnce reports whether anything was said of the flip.
func flipOnce(t *testing.T, fs *vfs.Mem, o Options, logs []*modelLog, name string, pos int64) bool {
	t.Helper()
	disk := fs.Crash(1) // a copy: all of it is synced
	flipBit(t, disk, name, pos)
	var said atomic.Int64
	o.FS, o.Logger = disk, slog.New(errorCounter{slog.DiscardHandler, &said})
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Errorf("%s at %d: the store does not open: %v", name, pos, err)
		return true
	}
	defer s.Close()
	damaged := 0
	for _, m := range logs {
		l := s.Log(m.id)
		if l.Start() != m.start || l.End() != m.end() {
			t.Errorf("%s at %d: %v is %d to %d, was %d to %d", name, pos, m.id, l.Start(), l.End(), m.start, m.end())
		}
		if bad := readAround(t, l, m, name, pos); bad > 0 {
			damaged++
		}
	}
	_, noIndex := fs.Size(strings.TrimSuffix(name, format.ExtData) + format.ExtIndex)
	journal := path.Ext(name) == format.ExtData && noIndex != nil // a lost frame may hold several logs
	if damaged > 1 && !journal || damaged > 0 && said.Load() == 0 {
		t.Errorf("%s at %d: %d logs are hit, %d things were said", name, pos, damaged, said.Load())
	}
	return said.Load() > 0
}

// readAround reads all that can be read, checks it, and counts the damage met.
func readAround(t *testing.T, l *Log, m *modelLog, name string, pos int64) (bad int) {
	t.Helper()
	want := m.batches
	for from := m.start; from < m.end(); {
		c, err := l.Read(context.Background(), from, m.end(), 1<<20, true)
		if err != nil {
			next, ok := nextReadable(err)
			if !ok || next <= from || model.ClassOf(err) != model.ClassCorrupt {
				t.Fatalf("%s at %d: read at %d: %v", name, pos, from, err)
			}
			bad++
			from = next
			continue
		}
		for _, got := range batches(t, c) {
			for len(want) > 0 && want[0].BaseOffset() < got.BaseOffset() {
				want = want[1:]
			}
			if len(want) == 0 || !bytes.Equal(got, want[0]) {
				t.Fatalf("%s at %d: the batch at %d is altered", name, pos, got.BaseOffset())
			}
		}
		from = c.Next
	}
	return bad
}

func flipBit(t *testing.T, fs vfs.FS, name string, pos int64) {
	t.Helper()
	f, err := fs.OpenRW(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], pos); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (pos % 8)
	if _, err := f.WriteAt(b[:], pos); err != nil {
		t.Fatal(err)
	}
}
