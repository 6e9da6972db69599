package partlog

import (
	"path"

	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

const (
	// reserveName is a file whose room a checkpoint may take when the disk is
	// full: without one nothing could be given back, and no start could succeed.
	reserveName = "checkpoint.reserve"
	// reserveLeast is its least size; it holds two checkpoints with room to grow.
	reserveLeast = 1 << 20
)

// writeCheckpoint writes st, in the reserve's room if there is no other.
func (s *Store) writeCheckpoint(st checkpoint.State) error {
	size, err := checkpoint.Write(s.fs, s.dir, st)
	if vfs.IsNoSpace(err) {
		s.log.Warn("the disk is full: a checkpoint takes the room of its reserve", "err", err)
		if err := removeIfThere(s.fs, path.Join(s.dir, reserveName)); err != nil {
			return err
		}
		size, err = checkpoint.Write(s.fs, s.dir, st)
	}
	s.stats.checkpointSize.Store(size)
	return err
}

// keepReserve makes the reserve, or makes it larger, when the disk has room. That
// it cannot is no failure of anything yet.
func (s *Store) keepReserve() {
	if s.journal.SpaceState() != journal.SpaceOK {
		return
	}
	name := path.Join(s.dir, reserveName)
	want := max(3*s.stats.checkpointSize.Load(), reserveLeast)
	if have, err := s.fs.Size(name); err == nil && have >= want*2/3 {
		return
	}
	err := removeIfThere(s.fs, name)
	var f vfs.File
	if err == nil {
		f, err = s.fs.Create(name)
	}
	if err == nil {
		if err = f.Allocate(0, want); err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		s.log.Warn("no room for the checkpoint's reserve", "file", name, "bytes", want, "err", err)
	}
}
