package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Allocate reserves blocks with fallocate; where the file system cannot, it
// writes zeros.
func (f osFile) Allocate(off, n int64) error {
	err := f.control("fallocate", func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return allocatePlain(f, off, n)
	}
	return err
}

// SyncData is fdatasync.
func (f osFile) SyncData() error { return f.control("fdatasync", unix.Fdatasync) }
