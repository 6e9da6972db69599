// Package vfs is the file contract that storage stands on: the operating
// system's files, files in memory that can crash (lose what was not synced),
// and a wrapper that injects faults. Names are slash-separated paths.
package vfs

import (
	"errors"
	"io"
)

// ErrLocked is what Lock answers when another process holds the lock.
var ErrLocked = errors.New("in use by another process")

// FS is a file system. Every method may be called from any goroutine.
type FS interface {
	// Create makes a new file for reading and writing; it fails if the name exists.
	// The name survives a crash only after SyncDir of its directory.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenRW opens an existing file for reading and writing.
	OpenRW(name string) (File, error)
	// Remove deletes a file; durable after SyncDir.
	Remove(name string) error
	// Rename replaces newName atomically; durable after SyncDir.
	Rename(oldName, newName string) error
	// List gives the base names in dir, sorted.
	List(dir string) ([]string, error)
	// Size gives a file's length in bytes.
	Size(name string) (int64, error)
	// MkdirAll makes dir and its parents, and makes them durable.
	MkdirAll(dir string) error
	// SyncDir makes the creations, renames and removals in dir durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on name for this process, creating it if
	// need be. It fails at once when another holder lives.
	Lock(name string) (io.Closer, error)
	// Space tells the room on the file system of dir, in bytes.
	Space(dir string) (Space, error)
}

// Space is room on a file system, in bytes.
type Space struct{ Free, Total uint64 }

// File is an open file. Reads and writes at positions may run side by side.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// WriteVec writes bufs one after the other from off on. The buffers are
	// not kept and not changed.
	WriteVec(bufs [][]byte, off int64) (int64, error)
	// Allocate reserves room for n bytes from off on, so that writing there
	// cannot meet a full disk. The file grows to hold them and they read as zeros.
	Allocate(off, n int64) error
	Truncate(size int64) error
	Size() (int64, error)
	// SyncData makes written bytes durable, and of the metadata what reading
	// them back needs (fdatasync).
	SyncData() error
	// Sync makes bytes and metadata durable.
	Sync() error
}
