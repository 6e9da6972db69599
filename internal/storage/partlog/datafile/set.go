// Package datafile keeps the files that logs are read from: it opens them on
// demand under a cap of open handles, and pins them so that none is unlinked or
// recycled under a reader. It also caches block lists of indexes. It does not know
// which log uses which file.
package datafile

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Set is a set of files that share a cap of open handles.
type Set struct {
	fs  vfs.FS
	cap int

	mu   sync.Mutex
	room *sync.Cond // a handle went idle or was closed
	open int        // handles, busy and idle
	idle list.List  // of *File, the longest unused in front
}

// NewSet makes a set that keeps at most openCap handles.
func NewSet(fs vfs.FS, openCap int) *Set {
	s := &Set{fs: fs, cap: max(openCap, 1)}
	s.room = sync.NewCond(&s.mu)
	return s
}

// Open is the number of handles now open.
func (s *Set) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// File is one file of a set. Its creator holds one pin, which Retire gives up.
type File struct {
	ID  model.FileID
	set *Set

	pins   atomic.Int64
	retire func() // set before the creator's pin goes, run when the last pin goes

	// under set.mu
	path   string
	handle vfs.File
	users  int
	idle   *list.Element
}

// Add names a file. It need not exist before it is first read.
func (s *Set) Add(id model.FileID, path string) *File {
	f := &File{ID: id, set: s, path: path}
	f.pins.Store(1)
	return f
}

// Path is where the file is now.
func (f *File) Path() string {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	return f.path
}

// Pin keeps the file from being retired. The caller must know that it is not
// retired yet: it holds the lock of a log that still refers to it.
func (f *File) Pin() { f.pins.Add(1) }

// Unpin ends a Pin; the last one runs what Retire asked for.
func (f *File) Unpin() {
	if f.pins.Add(-1) == 0 {
		f.set.close(f)
		f.retire()
	}
}

// Retire gives up the creator's pin: then runs once, when no reader is left, on
// whichever goroutine was last. No log may refer to the file any more.
func (f *File) Retire(then func()) {
	f.retire = then
	f.Unpin()
}

// ReadAt fills p from off on. The caller holds a pin. A file that ends early is
// ClassCorrupt; another failure to read is ClassStorage.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	h, err := f.set.acquire(f)
	if err != nil {
		return 0, f.fail("open", off, err)
	}
	defer f.set.release(f)
	n, err := h.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	return n, f.fail("read", off, err)
}

// Size is the length of the file in bytes.
func (f *File) Size() (int64, error) {
	h, err := f.set.acquire(f)
	if err != nil {
		return 0, f.fail("open", 0, err)
	}
	defer f.set.release(f)
	n, err := h.Size()
	if err != nil {
		return 0, f.fail("size", 0, err)
	}
	return n, nil
}

func (f *File) fail(op string, off int64, err error) error {
	class := model.ClassStorage
	if errors.Is(err, io.EOF) {
		class = model.ClassCorrupt
	}
	return &model.Error{
		Class: class, Op: op, Object: f.Path(),
		Detail: fmt.Sprintf("the disk cannot give what was stored at position %d", off), Cause: err,
	}
}

// acquire gives the file's handle, opening it if need be.
func (s *Set) acquire(f *File) (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f.handle == nil && s.open >= s.cap {
		if front := s.idle.Front(); front != nil {
			s.closeLocked(front.Value.(*File))
		} else {
			s.room.Wait()
		}
	}
	if f.handle == nil {
		// Opened under the lock: it is short, and two readers must not open twice.
		h, err := s.fs.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.handle = h
		s.open++
	}
	if f.idle != nil {
		s.idle.Remove(f.idle)
		f.idle = nil
	}
	f.users++
	return f.handle, nil
}

func (s *Set) release(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.users--
	if f.users == 0 {
		f.idle = s.idle.PushBack(f)
		s.room.Signal()
	}
}

// closeLocked closes an idle handle. It was only read from, so an error of
// closing says nothing about data.
func (s *Set) closeLocked(f *File) {
	if f.handle == nil {
		return
	}
	_ = f.handle.Close()
	f.handle = nil
	s.open--
	if f.idle != nil {
		s.idle.Remove(f.idle)
		f.idle = nil
	}
	s.room.Signal()
}

func (s *Set) close(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(f)
}

// Move renames the file.
func (f *File) Move(to string) error {
	s := f.set
	s.mu.Lock()
	defer s.mu.Unlock()
	// Under the lock, so that no reader opens the old name after it is gone.
	if err := s.fs.Rename(f.path, to); err != nil {
		return err
	}
	f.path = to
	return nil
}

// CloseIdle closes every handle that no reader uses.
func (s *Set) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for front := s.idle.Front(); front != nil; front = s.idle.Front() {
		s.closeLocked(front.Value.(*File))
	}
}
