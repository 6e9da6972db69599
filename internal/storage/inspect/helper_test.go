package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

const testDir = "data"

func part(topic byte, index int32) model.PartitionID {
	return model.PartitionID{Topic: model.TopicID{topic}, Index: index}
}

// clock is the store's time, which tests move on.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func openStore(t *testing.T, fs vfs.FS, c *clock) *partlog.Store {
	t.Helper()
	s, err := partlog.Open(context.Background(), partlog.Options{
		FS: fs, Dir: testDir, JournalFileSize: 128 << 10, JournalCap: 512 << 10, MemoryBudget: 32 << 10,
		Logger: slog.New(slog.DiscardHandler), Clock: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// batch makes a batch of n records with size bytes each.
func batch(t *testing.T, base model.Offset, n, size int) model.Batch {
	t.Helper()
	b := records.NewBuilder(records.Plain(time.UnixMilli(1_700_000_000_000 + int64(base))))
	for i := range n {
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(int(base)*31 + i*7 + j)
		}
		b.Add(int64(i), fmt.Appendf(nil, "key-%d", int(base)+i), value, nil)
	}
	out, err := b.Build(int32(n - 1))
	if err != nil {
		t.Fatal(err)
	}
	out.SetBaseOffset(base)
	return out
}

// put appends batches to partitions as one group and waits.
func put(t *testing.T, s *partlog.Store, batches map[model.PartitionID]model.Batch) {
	t.Helper()
	done := make(chan error, 1)
	g := &storage.Group{Done: func(_ model.LSN, err error) { done <- err }}
	for p, b := range batches {
		g.Entries = append(g.Entries, storage.Entry{
			Kind: storage.EntryBatches, Part: p, Base: b.BaseOffset(), Last: b.LastOffset(), MaxTimestamp: b.MaxTimestamp(), Data: b,
		})
	}
	err := s.Append(g)
	if model.ClassOf(err) == model.ClassOverloaded { // the writer is faster than the work behind it
		waitFor(t, "the backlog to shrink", func() bool { err = s.Append(g); return model.ClassOf(err) != model.ClassOverloaded })
	}
	if err == nil {
		err = <-done
	}
	if err != nil {
		t.Fatal(err)
	}
}

var filled = struct {
	sync.Mutex
	mem *vfs.Mem
}{}

// fill gives a directory with segments, adopted files and journal files.
func fill(t *testing.T) *vfs.Mem {
	t.Helper()
	filled.Lock()
	defer filled.Unlock()
	for filled.mem == nil {
		mem := makeDir(t)
		roles := rolesIn(t, mem)
		if roles[RoleSegment] > 0 && roles[RoleAdopted] > 0 && roles[RoleJournal] > 0 {
			filled.mem = mem // else a merge has taken the last of some kind
		}
	}
	return filled.mem.Crash(1) // nothing is unsynced: a plain copy
}

func makeDir(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem(0)
	var c clock
	s := openStore(t, mem, &c)
	small := []model.PartitionID{part(1, 0), part(1, 1), part(2, 0)}
	bulk := part(3, 0)
	load := func(round int) {
		for i := range 150 { // short extents: flushed
			p := small[(round*150+i)%len(small)]
			put(t, s, map[model.PartitionID]model.Batch{p: batch(t, s.Log(p).End(), 2, 700)})
		}
		for range 30 { // long ones: adopted
			put(t, s, map[model.PartitionID]model.Batch{
				bulk:     batch(t, s.Log(bulk).End(), 10, 3000),
				small[0]: batch(t, s.Log(small[0]).End(), 10, 3000),
			})
		}
	}
	load(0)
	load(1)
	trimmed := make(chan error, 1)
	if err := s.Log(small[1]).TrimTo(20, func(err error) { trimmed <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-trimmed; err != nil {
		t.Fatal(err)
	}
	// Files of every kind must be in the checkpoint; merges take some away.
	for round := 2; ; round++ {
		before := s.Stats().Checkpoints
		waitFor(t, "a checkpoint", func() bool {
			c.ahead.Add(int64(time.Second))
			return s.Stats().Checkpoints > before
		})
		roles := rolesIn(t, mem)
		if roles[RoleSegment] > 0 && roles[RoleAdopted] > 0 {
			break
		}
		load(round)
	}
	// What comes after the checkpoint stays in the journal.
	for i := range 20 {
		p := small[i%len(small)]
		put(t, s, map[model.PartitionID]model.Batch{p: batch(t, s.Log(p).End(), 2, 700)})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return mem.Crash(1)
}

// rolesIn counts the data files by role.
func rolesIn(t *testing.T, fs vfs.FS) map[Role]int {
	t.Helper()
	roles := make(map[Role]int)
	for _, f := range inspectDir(t, fs).Files {
		roles[f.Role]++
	}
	return roles
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func inspectDir(t *testing.T, fs vfs.FS) *Dir {
	t.Helper()
	d, err := Open(fs, testDir)
	if err != nil {
		t.Fatal(err)
	}
	d.pause = time.Millisecond
	return d
}

// verifyOnce looks without the second look, which only a live broker needs.
func verifyOnce(t *testing.T, fs vfs.FS) *Report {
	t.Helper()
	r, err := inspectDir(t, fs).verify(context.Background(), make(map[string]*scan))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// edit changes n bytes at pos of a file.
func edit(t *testing.T, fs vfs.FS, name string, pos, n int64, change func([]byte)) {
	t.Helper()
	f, err := fs.OpenRW(path.Join(testDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, pos); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	change(b)
	if _, err := f.WriteAt(b, pos); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}
