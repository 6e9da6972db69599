//go:build !linux

package vfs

// Allocate writes zeros beyond the file's end: it is not the hot path here.
func (f osFile) Allocate(off, n int64) error { return allocatePlain(f, off, n) }

// SyncData is the full sync: Go's File.Sync asks for F_FULLFSYNC on darwin and
// FlushFileBuffers on Windows.
func (f osFile) SyncData() error { return f.Sync() }
