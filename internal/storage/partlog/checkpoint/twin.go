package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Names are the twins' base names.
var Names = [2]string{"checkpoint.a", "checkpoint.b"}

const (
	tmpSuffix = ".new"
	// maxSize bounds what is read into memory at start.
	maxSize = 2 << 30
	// writeChunk bounds one write call, so that a big checkpoint does not hold
	// the disk's queue for long.
	writeChunk = 1 << 20
)

// ErrNone says that the directory has no checkpoint: it is new.
var ErrNone = errors.New("no checkpoint")

// Write replaces both twins. Each step leaves at least one whole, and nothing may
// be deleted on the strength of s before Write has returned nil. The content of
// the files in dir that s lists must be durable; their names are made so here.
// It gives the size of one twin in bytes.
func Write(fsys vfs.FS, dir string, s State) (size int64, err error) {
	buf := Encode(s)
	size = int64(len(buf))
	if size > maxSize {
		return size, model.Err(model.ClassTooLarge, fmt.Sprintf("checkpoint of %d bytes is over the limit of %d", len(buf), maxSize))
	}
	for _, name := range Names {
		if err := writeNew(fsys, path.Join(dir, name)+tmpSuffix, buf); err != nil {
			return size, fmt.Errorf("checkpoint: %w", err)
		}
	}
	// The names of the files that s lists must not be lost while s is kept.
	if err := fsys.SyncDir(dir); err != nil {
		return size, fmt.Errorf("checkpoint: %w", err)
	}
	for _, name := range Names {
		name = path.Join(dir, name)
		if err := fsys.Rename(name+tmpSuffix, name); err != nil {
			return size, fmt.Errorf("checkpoint: %w", err)
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return size, fmt.Errorf("checkpoint: %w", err)
	}
	return size, nil
}

func writeNew(fsys vfs.FS, name string, buf []byte) (err error) {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for at := 0; at < len(buf); at += writeChunk {
		if _, err := f.WriteAt(buf[at:min(at+writeChunk, len(buf))], int64(at)); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Load gives the newest whole twin. damage names what is wrong with the other, or
// with both; the caller heals it by the next Write. With no twin at all the error
// is ErrNone; with none whole it is ClassCorrupt and the store must be rebuilt.
func Load(fsys vfs.FS, dir string) (s State, damage []error, err error) {
	found, missing := false, 0
	for _, name := range Names {
		one, err := read(fsys, path.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing++
			damage = append(damage, fmt.Errorf("%s is missing", name))
		case err != nil && model.ClassOf(err) != model.ClassCorrupt:
			return State{}, nil, fmt.Errorf("%s: %w", name, err)
		case err != nil:
			damage = append(damage, fmt.Errorf("%s: %w", name, err))
		case !found || one.Seq > s.Seq:
			s, found = one, true
		}
	}
	switch {
	case found:
		return s, damage, nil
	case missing == len(Names):
		return State{}, nil, ErrNone
	}
	return State{}, damage, &model.Error{
		Class: model.ClassCorrupt, Op: "checkpoint", Object: dir,
		Detail: "neither copy can be read", Cause: errors.Join(damage...),
	}
}

func read(fsys vfs.FS, name string) (State, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return State{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return State{}, err
	}
	if size > maxSize {
		return State{}, corrupt("has %d bytes, over the limit of %d", size, maxSize)
	}
	buf := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), buf); err != nil {
		return State{}, err
	}
	return Decode(buf)
}
