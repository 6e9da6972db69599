package vfs

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

var noSpaceErrors = []error{syscall.ENOSPC, windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}

// syncDir has nothing to do: NTFS journals its metadata and offers no call for it.
func syncDir(string) error { return nil }

func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

func diskSpace(dir string) (Space, error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, &total, nil); err != nil {
		return Space{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	return Space{Free: free, Total: total}, nil
}

// WriteVec writes the buffers one by one.
func (f osFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	return writeVecPlain(f, bufs, off)
}
