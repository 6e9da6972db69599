package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Mem is a file system in memory. It knows which bytes and names were made
// durable, so that Crash can give a copy as a power failure would leave it.
type Mem struct {
	// world is held for reading by every operation, for writing by Crash: a
	// crash happens at one moment for all files.
	world sync.RWMutex

	mu     sync.Mutex
	dirs   map[string]*memDir
	locked map[string]bool
	used   int64
	total  int64
}

// memDir is one directory: what it holds now, what of that is durable, and the
// changes in between.
type memDir struct {
	files  map[string]*memNode
	synced map[string]*memNode
	ops    []dirOp
}

// dirOp is an unsynced change of a directory: node gets the name to, and loses
// the name from, where those are not "".
type dirOp struct {
	node     *memNode
	from, to string
}

// apply makes the change. A file has one name: a kept rename ends the names
// before it, even when the rename that gave op.from was lost.
func (op dirOp) apply(names map[string]*memNode) {
	maps.DeleteFunc(names, func(name string, n *memNode) bool {
		return n == op.node && (name == op.from || op.to != "")
	})
	if op.to != "" {
		names[op.to] = op.node
	}
}

var _ FS = (*Mem)(nil)

// NewMem gives an empty file system of total bytes; 0 means 1 TiB.
func NewMem(total int64) *Mem {
	if total == 0 {
		total = 1 << 40
	}
	return &Mem{
		dirs:   map[string]*memDir{".": newMemDir(), "/": newMemDir()},
		locked: make(map[string]bool), total: total,
	}
}

func newMemDir() *memDir {
	return &memDir{files: make(map[string]*memNode), synced: make(map[string]*memNode)}
}

// SetTotal changes the size of the disk.
func (m *Mem) SetTotal(total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = total
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// split finds the directory of name; m.mu is held.
func (m *Mem) splitLocked(op, name string) (*memDir, string, error) {
	dir, base := path.Split(path.Clean(name))
	d := m.dirs[path.Clean(dir)]
	if d == nil {
		return nil, "", pathError(op, name, fs.ErrNotExist)
	}
	return d, base, nil
}

func (m *Mem) enter() (leave func()) {
	m.world.RLock()
	m.mu.Lock()
	return func() {
		m.mu.Unlock()
		m.world.RUnlock()
	}
}

// Create makes a new file.
func (m *Mem) Create(name string) (File, error) {
	defer m.enter()()
	d, base, err := m.splitLocked("create", name)
	if err != nil {
		return nil, err
	}
	if d.files[base] != nil || m.dirs[path.Clean(name)] != nil {
		return nil, pathError("create", name, fs.ErrExist)
	}
	n := &memNode{pages: make(map[int64]*memPage), old: make(map[int64]*memPage)}
	d.files[base] = n
	d.ops = append(d.ops, dirOp{node: n, to: base})
	return &memFile{fs: m, node: n, name: name, writable: true}, nil
}

// Open opens for reading.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenRW opens for reading and writing.
func (m *Mem) OpenRW(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, writable bool) (File, error) {
	defer m.enter()()
	n, err := m.nodeLocked("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{fs: m, node: n, name: name, writable: writable}, nil
}

func (m *Mem) nodeLocked(op, name string) (*memNode, error) {
	d, base, err := m.splitLocked(op, name)
	if err != nil {
		return nil, err
	}
	if n := d.files[base]; n != nil {
		return n, nil
	}
	return nil, pathError(op, name, fs.ErrNotExist)
}

// Remove deletes a file; who has it open keeps it.
func (m *Mem) Remove(name string) error {
	defer m.enter()()
	n, err := m.nodeLocked("remove", name)
	if err != nil {
		return err
	}
	d, base, _ := m.splitLocked("remove", name)
	delete(d.files, base)
	d.ops = append(d.ops, dirOp{node: n, from: base})
	m.used -= n.length()
	return nil
}

// Rename replaces newName atomically.
func (m *Mem) Rename(oldName, newName string) error {
	defer m.enter()()
	n, err := m.nodeLocked("rename", oldName)
	if err != nil {
		return err
	}
	from, oldBase, _ := m.splitLocked("rename", oldName)
	to, newBase, err := m.splitLocked("rename", newName)
	if err != nil {
		return err
	}
	if gone := to.files[newBase]; gone != nil && gone != n {
		m.used -= gone.length()
	}
	delete(from.files, oldBase)
	to.files[newBase] = n
	if from == to {
		to.ops = append(to.ops, dirOp{node: n, from: oldBase, to: newBase})
		return nil
	}
	to.ops = append(to.ops, dirOp{node: n, to: newBase})
	from.ops = append(from.ops, dirOp{node: n, from: oldBase})
	return nil
}

// List gives the base names of files and directories in dir.
func (m *Mem) List(dir string) ([]string, error) {
	defer m.enter()()
	dir = path.Clean(dir)
	d := m.dirs[dir]
	if d == nil {
		return nil, pathError("list", dir, fs.ErrNotExist)
	}
	var names []string
	for name := range d.files {
		names = append(names, name)
	}
	for name := range m.dirs {
		if path.Dir(name) == dir && name != dir {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Size gives a file's length.
func (m *Mem) Size(name string) (int64, error) {
	defer m.enter()()
	n, err := m.nodeLocked("stat", name)
	if err != nil {
		return 0, err
	}
	return n.length(), nil
}

// MkdirAll makes dir and its parents, durably.
func (m *Mem) MkdirAll(dir string) error {
	defer m.enter()()
	for dir = path.Clean(dir); m.dirs[dir] == nil; dir = path.Dir(dir) {
		if d, base, err := m.splitLocked("mkdir", dir); err == nil && d.files[base] != nil {
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
		m.dirs[dir] = newMemDir()
	}
	return nil
}

// SyncDir makes the names in dir durable.
func (m *Mem) SyncDir(dir string) error {
	defer m.enter()()
	d := m.dirs[path.Clean(dir)]
	if d == nil {
		return pathError("sync", dir, fs.ErrNotExist)
	}
	for _, op := range d.ops {
		op.apply(d.synced)
	}
	d.ops = nil
	return nil
}

// Lock takes the lock of name, which a crash frees.
func (m *Mem) Lock(name string) (io.Closer, error) {
	defer m.enter()()
	name = path.Clean(name)
	if m.locked[name] {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	d, base, err := m.splitLocked("lock", name)
	if err != nil {
		return nil, err
	}
	if d.files[base] == nil {
		d.files[base] = &memNode{pages: make(map[int64]*memPage), old: make(map[int64]*memPage)}
	}
	m.locked[name] = true
	return memLock{m, name}, nil
}

type memLock struct {
	fs   *Mem
	name string
}

func (l memLock) Close() error {
	defer l.fs.enter()()
	delete(l.fs.locked, l.name)
	return nil
}

// Space tells the room that SetTotal leaves.
func (m *Mem) Space(string) (Space, error) {
	defer m.enter()()
	return Space{Free: uint64(max(0, m.total-m.used)), Total: uint64(m.total)}, nil
}

// grow accounts for more bytes; it refuses with ENOSPC.
func (m *Mem) grow(n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 && m.used+n > m.total {
		return syscall.ENOSPC
	}
	m.used += n
	return nil
}

// String lists files and sizes, for the messages of tests.
func (m *Mem) String() string {
	defer m.enter()()
	var lines []string
	for dir, d := range m.dirs {
		for name, n := range d.files {
			lines = append(lines, fmt.Sprintf("%s %d", path.Join(dir, name), n.length()))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
