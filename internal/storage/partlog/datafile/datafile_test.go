package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// countFS counts open handles and remembers the most there were at once.
type countFS struct {
	vfs.FS
	open, most atomic.Int64
}

type countFile struct {
	vfs.File
	fs *countFS
}

func (c *countFS) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	n := c.open.Add(1)
	for m := c.most.Load(); n > m && !c.most.CompareAndSwap(m, n); m = c.most.Load() {
	}
	return countFile{f, c}, nil
}

func (f countFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

func newFS(t *testing.T, files int) *countFS {
	t.Helper()
	m := vfs.NewMem(0)
	if err := m.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		f, err := m.Create(fmt.Sprintf("d/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{byte(i), 1, 2, 3}, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return &countFS{FS: m}
}

func TestHandlesStayUnderTheCap(t *testing.T) {
	fsys := newFS(t, 20)
	s := NewSet(fsys, 3)
	files := make([]*File, 20)
	for i := range files {
		files[i] = s.Add(model.FileID(i), path.Join("d", fmt.Sprint(i)))
	}
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 1))
			for range 300 {
				i := rng.IntN(len(files))
				var b [1]byte
				if _, err := files[i].ReadAt(b[:], 0); err != nil || b[0] != byte(i) {
					t.Errorf("file %d gives %d, %v", i, b[0], err)
				}
			}
		})
	}
	wg.Wait()
	if fsys.most.Load() > 3 || s.Open() > 3 {
		t.Errorf("%d handles at once", fsys.most.Load())
	}
	s.CloseIdle()
	if fsys.open.Load() != 0 || s.Open() != 0 {
		t.Errorf("%d handles are left", fsys.open.Load())
	}
}

func TestRetireWaitsForTheLastReader(t *testing.T) {
	s := NewSet(newFS(t, 1), 2)
	f := s.Add(1, "d/0")
	f.Pin()
	gone := false
	f.Retire(func() { gone = true })
	if gone {
		t.Fatal("retired under a reader")
	}
	if _, err := f.ReadAt(make([]byte, 4), 0); err != nil {
		t.Error(err)
	}
	f.Unpin()
	if !gone || s.Open() != 0 {
		t.Errorf("retired: %v, %d handles", gone, s.Open())
	}
}

func TestReadErrors(t *testing.T) {
	s := NewSet(newFS(t, 1), 2)
	if _, err := s.Add(1, "d/0").ReadAt(make([]byte, 5), 0); model.ClassOf(err) != model.ClassCorrupt {
		t.Errorf("beyond the end: %v", err)
	}
	_, err := s.Add(2, "d/none").ReadAt(make([]byte, 1), 0)
	if model.ClassOf(err) != model.ClassStorage || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}

func TestBlocksKeepToTheirBudget(t *testing.T) {
	m := vfs.NewMem(0)
	if err := m.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	var b index.Builder
	const parts = 10
	for i := range parts * 100 {
		p := model.PartitionID{Index: int32(i / 100)}
		b.Add(p, index.Block{Pos: int64(i), Base: model.Offset(i % 100), Last: model.Offset(i % 100)})
	}
	buf, sum := b.Encode(1, 1<<20)
	h, err := m.Create("d/i")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	f := NewSet(m, 1).Add(1, "d/i")
	c := NewBlocks(3 * 100 * blockCost)
	for range 3 {
		for i, r := range sum.Runs {
			got, err := c.Get(f, r.Section)
			if err != nil || len(got) != 100 || got[0].Pos != int64(i*100) {
				t.Fatalf("run %d: %d blocks, %v", i, len(got), err)
			}
			if c.used > c.budget || c.order.Len() != len(c.byKey) {
				t.Fatalf("%d bytes, %d lists", c.used, c.order.Len())
			}
		}
	}
	c.Forget(f)
	if c.used != 0 || len(c.byKey) != 0 {
		t.Errorf("%d bytes are left", c.used)
	}
}

func TestRecentIsBoundedAndCopies(t *testing.T) {
	var r Recent
	f := &File{}
	data := bytes.Repeat([]byte{7}, recentLeast)
	r.Put(f, 0, data)
	data[0] = 8
	if got := r.Get(f, 0, recentLeast); got == nil || got[0] != 7 {
		t.Error("the block is not the one that was put")
	}
	if r.Get(f, 0, recentLeast+1) != nil {
		t.Error("a longer block at the same place is not the one that was put")
	}
	r.Put(f, 1, data[:10])
	if r.Get(f, 1, 10) != nil {
		t.Error("a small block is kept")
	}
	for i := range int64(recentBlocks) {
		r.Put(f, 10+i, data)
	}
	if r.Get(f, 0, recentLeast) != nil || len(r.blocks) != recentBlocks {
		t.Errorf("%d blocks are kept", len(r.blocks))
	}
}
