package vfs

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
)

// memPageSize is the unit in which Mem keeps bytes; memSector what a torn write
// writes whole.
const (
	memPageSize = 4096
	memSector   = 512
)

type memPage [memPageSize]byte

// memNode is a file's content: now, and as it was at the last sync.
type memNode struct {
	mu    sync.RWMutex
	pages map[int64]*memPage // absent pages are zeros
	size  int64
	// old holds the pages that changed since the last sync as they were then
	// (nil: zeros), oldSize the size then, ops the changes in order.
	old     map[int64]*memPage
	oldSize int64
	ops     []fileOp
}

// fileOp is an unsynced change: data written at off, or the size set to off.
type fileOp struct {
	off    int64
	data   []byte
	resize bool
}

func (n *memNode) length() int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.size
}

// pageLocked gives the page to write to, after keeping its old content.
func (n *memNode) pageLocked(i int64) *memPage {
	p := n.pages[i]
	if _, kept := n.old[i]; !kept {
		n.old[i] = p
		fresh := new(memPage)
		if p != nil {
			*fresh = *p
		}
		p = fresh
		n.pages[i] = p
	}
	if p == nil {
		p = new(memPage)
		n.pages[i] = p
	}
	return p
}

func (n *memNode) writeLocked(b []byte, off int64) {
	n.size = max(n.size, off+int64(len(b)))
	for len(b) > 0 {
		c := copy(n.pageLocked(off / memPageSize)[off%memPageSize:], b)
		b, off = b[c:], off+int64(c)
	}
}

func (n *memNode) resizeLocked(size int64) {
	if size < n.size {
		if rest := size % memPageSize; rest != 0 && n.pages[size/memPageSize] != nil {
			clear(n.pageLocked(size / memPageSize)[rest:])
		}
		for i := range n.pages {
			if i*memPageSize >= size {
				if _, kept := n.old[i]; !kept {
					n.old[i] = n.pages[i]
				}
				delete(n.pages, i)
			}
		}
	}
	n.size = size
}

func (n *memNode) readLocked(b []byte, off int64) int {
	b = b[:max(0, min(int64(len(b)), n.size-off))]
	total := len(b)
	for len(b) > 0 {
		in := off % memPageSize
		c := int(min(int64(len(b)), memPageSize-in))
		if p := n.pages[off/memPageSize]; p != nil {
			copy(b[:c], p[in:])
		} else {
			clear(b[:c])
		}
		b, off = b[c:], off+int64(c)
	}
	return total
}

// memFile is an open file of Mem.
type memFile struct {
	fs       *Mem
	node     *memNode
	name     string
	writable bool
	closed   atomic.Bool
}

func (f *memFile) check(op string, write bool) error {
	if f.closed.Load() {
		return pathError(op, f.name, fs.ErrClosed)
	}
	if write && !f.writable {
		return pathError(op, f.name, errReadOnly)
	}
	return nil
}

var (
	errReadOnly = errors.New("opened for reading only")
	errNegative = errors.New("negative position")
)

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.check("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, errNegative)
	}
	f.fs.world.RLock()
	defer f.fs.world.RUnlock()
	f.node.mu.RLock()
	defer f.node.mu.RUnlock()
	n := f.node.readLocked(b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.WriteVec([][]byte{b}, off)
	return int(n), err
}

// WriteVec is one write: a crash may keep it, lose it, or tear it.
func (f *memFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	if err := f.check("write", true); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("write", f.name, errNegative)
	}
	var data []byte
	for _, b := range bufs {
		data = append(data, b...)
	}
	f.fs.world.RLock()
	defer f.fs.world.RUnlock()
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if err := f.growLocked(off + int64(len(data))); err != nil {
		return 0, pathError("write", f.name, err)
	}
	f.node.writeLocked(data, off)
	f.node.ops = append(f.node.ops, fileOp{off: off, data: data})
	return int64(len(data)), nil
}

// growLocked makes sure that the disk has room for the file to reach end.
func (f *memFile) growLocked(end int64) error {
	if end <= f.node.size {
		return nil
	}
	return f.fs.grow(end - f.node.size)
}

func (f *memFile) Allocate(off, n int64) error {
	if err := f.check("allocate", true); err != nil {
		return err
	}
	f.fs.world.RLock()
	defer f.fs.world.RUnlock()
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if off+n <= f.node.size {
		return nil
	}
	if err := f.growLocked(off + n); err != nil {
		return pathError("allocate", f.name, err)
	}
	f.setSizeLocked(off + n)
	return nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.check("truncate", true); err != nil {
		return err
	}
	f.fs.world.RLock()
	defer f.fs.world.RUnlock()
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if err := f.fs.grow(size - f.node.size); err != nil {
		return pathError("truncate", f.name, err)
	}
	f.setSizeLocked(size)
	return nil
}

func (f *memFile) setSizeLocked(size int64) {
	f.node.resizeLocked(size)
	f.node.ops = append(f.node.ops, fileOp{off: size, resize: true})
}

func (f *memFile) Size() (int64, error) {
	if err := f.check("stat", false); err != nil {
		return 0, err
	}
	return f.node.length(), nil
}

func (f *memFile) SyncData() error {
	if err := f.check("sync", false); err != nil {
		return err
	}
	f.fs.world.RLock()
	defer f.fs.world.RUnlock()
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	clear(f.node.old)
	f.node.ops, f.node.oldSize = nil, f.node.size
	return nil
}

func (f *memFile) Sync() error { return f.SyncData() }

func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	return nil
}
