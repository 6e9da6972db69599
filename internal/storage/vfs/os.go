package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// OS is the operating system's file system.
type OS struct{}

var _ FS = OS{}

// Create makes a new file for reading and writing.
func (OS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open opens an existing file for reading.
func (OS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

// OpenRW opens an existing file for reading and writing.
func (OS) OpenRW(name string) (File, error) { return openOS(name, os.O_RDWR) }

// Remove deletes a file.
func (OS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

// Rename replaces newName atomically. On Windows neither file may be open.
func (OS) Rename(oldName, newName string) error {
	return os.Rename(filepath.FromSlash(oldName), filepath.FromSlash(newName))
}

// List gives the base names in dir, sorted.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Size gives a file's length in bytes.
func (OS) Size(name string) (int64, error) {
	st, err := os.Stat(filepath.FromSlash(name))
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// MkdirAll makes dir and its parents; each directory that gained an entry is synced.
func (o OS) MkdirAll(dir string) error {
	dir = filepath.Clean(filepath.FromSlash(dir))
	st, err := os.Stat(dir)
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file of this name is in the way")}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := o.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.SyncDir(parent)
}

// SyncDir makes the creations, renames and removals in dir durable.
func (OS) SyncDir(dir string) error { return syncDir(filepath.FromSlash(dir)) }

// Lock takes an exclusive lock on name. It lasts until Close or the end of the
// process; the file stays.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Space tells the room on the file system of dir that this process may use.
func (OS) Space(dir string) (Space, error) { return diskSpace(filepath.FromSlash(dir)) }

// osFile is an open file of the operating system.
type osFile struct{ *os.File }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), flag, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Size gives the file's length in bytes.
func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// writeVecPlain is WriteVec for systems without a vectored positional write.
func writeVecPlain(w io.WriterAt, bufs [][]byte, off int64) (int64, error) {
	var total int64
	for _, b := range bufs {
		n, err := w.WriteAt(b, off+total)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// allocatePlain writes zeros from the file's end on, for file systems that
// cannot reserve room; bytes below the end are there already.
func allocatePlain(f File, off, n int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	zeros := make([]byte, min(n, 1<<20))
	for pos := max(off, size); pos < off+n; {
		c := min(int64(len(zeros)), off+n-pos)
		if _, err := f.WriteAt(zeros[:c], pos); err != nil {
			return err
		}
		pos += c
	}
	return nil
}

// IsNoSpace reports whether err says that the disk (or the quota) is full.
func IsNoSpace(err error) bool {
	for _, e := range noSpaceErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
