//go:build linux || darwin

package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxVec is the number of buffers that one system call takes (IOV_MAX).
const maxVec = 1024

// WriteVec writes bufs with pwritev, in as few calls as the kernel allows.
func (f osFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	var total int64
	for len(bufs) > 0 {
		n := 0
		err := f.control("pwritev", func(fd int) (err error) {
			n, err = unix.Pwritev(fd, bufs[:min(len(bufs), maxVec)], off+total)
			return err
		})
		if err != nil {
			return total, err
		}
		total += int64(n)
		before := len(bufs)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if n == 0 {
			if len(bufs) == before {
				return total, &os.PathError{Op: "pwritev", Path: f.Name(), Err: io.ErrShortWrite}
			}
			continue
		}
		// A short write: finish this buffer, then go on vectored.
		m, err := f.WriteAt(bufs[0][n:], off+total)
		total += int64(m)
		if err != nil {
			return total, err
		}
		bufs = bufs[1:]
	}
	return total, nil
}

func (f osFile) control(op string, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var cerr error
	if err := conn.Control(func(fd uintptr) {
		for {
			if cerr = call(int(fd)); !errors.Is(cerr, unix.EINTR) {
				return
			}
		}
	}); err != nil {
		return err
	}
	if cerr != nil {
		return &os.PathError{Op: op, Path: f.Name(), Err: cerr}
	}
	return nil
}
