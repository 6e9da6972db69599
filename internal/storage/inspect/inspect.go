// Package inspect looks at a data directory from outside: it dumps data files as
// rows, verifies every file, and repairs what is damaged. It is what `daybook log`
// runs.
//
// Dump and Verify only read, take no lock, and may run beside a live broker: a
// tail that grows and files that go are not damage, and what looks like damage is
// looked at again before it is said. Repair takes the directory's lock; it writes
// mended copies and moves the damaged files aside, and never deletes. The package
// does not know topics' names nor what records mean.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Role is what a file is there for.
type Role string

// The roles of data files.
const (
	RoleJournal  Role = "journal"  // still the journal's, or not yet checkpointed as adopted
	RoleAdopted  Role = "adopted"  // a journal file that stays as a segment
	RoleSegment  Role = "segment"  //
	RoleStray    Role = "stray"    // a segment that no checkpoint lists: unfinished background work
	RolePrepared Role = "prepared" // a journal file that was never written
)

// File is a data file as found.
type File struct {
	Name        string       `json:"file"`
	ID          model.FileID `json:"id"`
	Role        Role         `json:"role"`
	Size        int64        `json:"size"`
	Kind        string       `json:"kind,omitempty"`
	FirstLSN    model.LSN    `json:"first_lsn,omitempty"`
	Incarnation uint64       `json:"incarnation"`

	header error // why the header cannot be used
	want   int64 // the size that the checkpoint says; 0 if it says nothing
}

// Dir is a data directory, as it was when it was listed.
type Dir struct {
	fs    vfs.FS
	path  string
	pause time.Duration // between the looks of Verify

	Files []File
	Aside []string // files that were set aside: damaged ones and backups

	check  checkpoint.State
	twins  []error // what is wrong with the checkpoint's copies
	absent bool    // there is no checkpoint
	lost   bool    // there is one, and no copy can be read
}

// Open lists a data directory. It is an error if dir has none of Daybook's files.
func Open(fsys vfs.FS, dir string) (*Dir, error) {
	d := &Dir{fs: fsys, path: dir, pause: lookAgain}
	if err := d.list(); err != nil {
		return nil, err
	}
	if len(d.Files) == 0 && d.absent {
		return nil, &model.Error{Class: model.ClassNotFound, Op: "inspect", Object: dir,
			Detail: "this is not a data directory; name the one that `daybook serve --data` uses"}
	}
	return d, nil
}

func (d *Dir) list() error {
	var err error
	d.check, d.twins, err = checkpoint.Load(d.fs, d.path)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		d.absent = true
	case model.ClassOf(err) == model.ClassCorrupt:
		d.lost = true
	case err != nil:
		return err
	}
	listed := make(map[model.FileID]checkpoint.Segment)
	for _, s := range d.check.Segments {
		listed[s.File] = s
	}
	names, err := d.fs.List(d.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		switch {
		case !ok:
		case ext == format.ExtData:
			f, err := d.look(name, id)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a live broker has let it go
			}
			if err != nil {
				return err
			}
			d.setRole(&f, listed)
			d.Files = append(d.Files, f)
		case ext != format.ExtSpare && ext != format.ExtIndex:
			d.Aside = append(d.Aside, name)
		}
	}
	slices.SortFunc(d.Files, func(a, b File) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// look reads a data file's header, or finds out by its frames what it is.
func (d *Dir) look(name string, id model.FileID) (File, error) {
	f := File{Name: name, ID: id, Role: RoleJournal}
	r, err := d.fs.Open(path.Join(d.path, name))
	if err != nil {
		return f, err
	}
	defer r.Close()
	if f.Size, err = r.Size(); err != nil {
		return f, err
	}
	s := format.NewScanner(r, id, f.Size, format.Heads)
	h, err := s.Header()
	if errors.Is(err, format.ErrVersion) {
		return f, &model.Error{Class: model.ClassUnsupported, Op: "inspect", Object: name, Cause: err,
			Detail: fmt.Sprintf("the file has format version %d, this Daybook reads up to %d", h.Version, format.Version)}
	}
	if err == nil && h.ID == id {
		f.Kind, f.FirstLSN, f.Incarnation = h.Kind.String(), h.FirstLSN, h.Incarnation
		if h.Kind == format.KindSegment {
			f.Role = RoleStray
		}
		return f, nil
	}
	if f.header = err; err == nil {
		f.header = format.ErrStale
	}
	frame, err := s.Next()
	if err != nil && s.Search() {
		frame, err = s.Next()
	}
	switch {
	case err != nil:
		f.Role = RolePrepared
	case frame.Flags&format.FlagSegment != 0:
		f.Role, f.Kind = RoleStray, format.KindSegment.String()
	}
	return f, nil
}

// setRole takes in what the checkpoint says of the file.
func (d *Dir) setRole(f *File, listed map[model.FileID]checkpoint.Segment) {
	s, ok := listed[f.ID]
	switch {
	case ok && s.Adopted:
		f.Role, f.want = RoleAdopted, s.Size
	case ok:
		f.Role, f.want = RoleSegment, s.Size
	case f.Role == RoleStray && (d.lost || d.absent):
		f.Role = RoleSegment // the checkpoint that could tell is gone
	}
}
