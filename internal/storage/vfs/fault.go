package vfs

import (
	"io"
	"path"
	"sync"
)

// Op is an operation that a fault can hit.
type Op uint8

// The operations.
const (
	OpCreate Op = iota
	OpOpen
	OpRemove
	OpRename // Name matches the old name
	OpSyncDir
	OpRead
	OpWrite
	OpAllocate
	OpTruncate
	OpSync // SyncData and Sync
)

// Rule is one fault. It hits operations Op on files whose base name matches
// Name (path.Match; "" is any), after the first After of them, Times times (0:
// for ever).
type Rule struct {
	Op    Op
	Name  string
	After int
	Times int
	// Err is what the operation answers, without being done; a write is done by half
	// first. With a nil Err the operation is skipped and answers success,
	// except reads.
	Err error
	// Flip is the position in the file whose lowest bit a read with nil Err
	// finds flipped.
	Flip int64
}

// Fault is a file system with faults. Rules may be added at any time.
type Fault struct {
	FS
	// Watch, when set before use, is called before each operation.
	Watch func(op Op, name string)

	mu    sync.Mutex
	rules []*rule
	seen  map[Op]int
}

type rule struct {
	Rule
	matched, hits int
}

// NewFault wraps fs.
func NewFault(fs FS) *Fault { return &Fault{FS: fs, seen: make(map[Op]int)} }

// Inject adds a rule.
func (f *Fault) Inject(r Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule{Rule: r})
}

// Heal removes all rules.
func (f *Fault) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Seen counts the operations of a kind so far.
func (f *Fault) Seen(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[op]
}

// hit finds the rule that op on name meets; nil if it goes through.
func (f *Fault) hit(op Op, name string) *Rule {
	if f.Watch != nil {
		f.Watch(op, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[op]++
	for _, r := range f.rules {
		if r.Op != op {
			continue
		}
		if ok, err := path.Match(r.Name, path.Base(name)); r.Name != "" && (!ok || err != nil) {
			continue
		}
		if r.matched++; r.matched <= r.After || r.Times > 0 && r.hits >= r.Times {
			continue
		}
		r.hits++
		return &r.Rule
	}
	return nil
}

// Create is FS.Create.
func (f *Fault) Create(name string) (File, error) {
	if r := f.hit(OpCreate, name); r != nil && r.Err != nil {
		return nil, pathError("create", name, r.Err)
	}
	return f.wrap(name)(f.FS.Create(name))
}

// Open is FS.Open.
func (f *Fault) Open(name string) (File, error) {
	if r := f.hit(OpOpen, name); r != nil && r.Err != nil {
		return nil, pathError("open", name, r.Err)
	}
	return f.wrap(name)(f.FS.Open(name))
}

// OpenRW is FS.OpenRW.
func (f *Fault) OpenRW(name string) (File, error) {
	if r := f.hit(OpOpen, name); r != nil && r.Err != nil {
		return nil, pathError("open", name, r.Err)
	}
	return f.wrap(name)(f.FS.OpenRW(name))
}

func (f *Fault) wrap(name string) func(File, error) (File, error) {
	return func(file File, err error) (File, error) {
		if err != nil {
			return nil, err
		}
		return &faultFile{File: file, fs: f, name: name}, nil
	}
}

// Remove is FS.Remove.
func (f *Fault) Remove(name string) error {
	if r := f.hit(OpRemove, name); r != nil {
		return r.Err
	}
	return f.FS.Remove(name)
}

// Rename is FS.Rename.
func (f *Fault) Rename(oldName, newName string) error {
	if r := f.hit(OpRename, oldName); r != nil {
		return r.Err
	}
	return f.FS.Rename(oldName, newName)
}

// SyncDir is FS.SyncDir.
func (f *Fault) SyncDir(dir string) error {
	if r := f.hit(OpSyncDir, dir); r != nil {
		return r.Err
	}
	return f.FS.SyncDir(dir)
}

// faultFile is an open file of Fault.
type faultFile struct {
	File
	fs   *Fault
	name string
}

func (f *faultFile) ReadAt(b []byte, off int64) (int, error) {
	r := f.fs.hit(OpRead, f.name)
	if r != nil && r.Err != nil {
		return 0, pathError("read", f.name, r.Err)
	}
	n, err := f.File.ReadAt(b, off)
	if r != nil && r.Flip >= off && r.Flip < off+int64(n) {
		b[r.Flip-off] ^= 1
	}
	return n, err
}

func (f *faultFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.WriteVec([][]byte{b}, off)
	return int(n), err
}

func (f *faultFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	r := f.fs.hit(OpWrite, f.name)
	if r == nil {
		return f.File.WriteVec(bufs, off)
	}
	if r.Err == nil {
		var n int64
		for _, b := range bufs {
			n += int64(len(b))
		}
		return n, nil
	}
	n, err := writeVecPlain(f.File, bufs[:len(bufs)/2], off)
	if err != nil {
		return n, err
	}
	return n, pathError("write", f.name, r.Err)
}

func (f *faultFile) Allocate(off, n int64) error {
	if r := f.fs.hit(OpAllocate, f.name); r != nil {
		return r.Err
	}
	return f.File.Allocate(off, n)
}

func (f *faultFile) Truncate(size int64) error {
	if r := f.fs.hit(OpTruncate, f.name); r != nil {
		return r.Err
	}
	return f.File.Truncate(size)
}

func (f *faultFile) SyncData() error {
	if r := f.fs.hit(OpSync, f.name); r != nil {
		return r.Err
	}
	return f.File.SyncData()
}

func (f *faultFile) Sync() error {
	if r := f.fs.hit(OpSync, f.name); r != nil {
		return r.Err
	}
	return f.File.Sync()
}

var (
	_ FS        = (*Fault)(nil)
	_ io.Closer = (*faultFile)(nil)
)
