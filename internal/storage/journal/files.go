package journal

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// files are the journal files that hold something: sealed ones and the live one.
type files struct {
	mu   sync.Mutex
	byID map[model.FileID]*file
}

// file is one of them. Of a live one only ID, Path and FirstLSN are kept up to date.
type file struct {
	Sealed
	size    int64 // length on disk, bytes
	live    bool
	damaged bool
}

func (s *files) add(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[model.FileID]*file)
	}
	s.byID[f.ID] = f
}

func (s *files) seal(sealed Sealed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[sealed.ID]
	f.Sealed, f.live = sealed, false
}

// removeSealed takes a sealed file out.
func (s *files) removeSealed(op string, id model.FileID) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[id]
	if f == nil || f.live {
		return nil, &model.Error{Class: model.ClassNotFound, Op: op, Object: fmt.Sprintf("journal file %016x", uint64(id)), Detail: "there is no such sealed file"}
	}
	delete(s.byID, id)
	return f, nil
}

func (s *files) get(id model.FileID) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// Files lists the sealed files, oldest first.
func (j *Journal) Files() []Sealed {
	j.files.mu.Lock()
	defer j.files.mu.Unlock()
	var all []Sealed
	for _, f := range j.files.byID {
		if !f.live {
			all = append(all, f.Sealed)
		}
	}
	slices.SortFunc(all, func(a, b Sealed) int { return cmp.Compare(a.FirstLSN, b.FirstLSN) })
	return all
}

// Path is where the file is, live or sealed; "" if the journal does not hold it.
func (j *Journal) Path(id model.FileID) string {
	if f := j.files.get(id); f != nil {
		return f.Path
	}
	return ""
}

// OpenFile opens a live or sealed file for reading. The caller closes it, on
// Windows before it calls Recycle.
func (j *Journal) OpenFile(id model.FileID) (vfs.File, error) {
	p := j.Path(id)
	if p == "" {
		return nil, &model.Error{Class: model.ClassNotFound, Op: "open", Object: fmt.Sprintf("journal file %016x", uint64(id))}
	}
	return j.o.FS.Open(p)
}

// Recycle says that a sealed file's content is no longer needed: it goes to the
// pool for reuse, or is removed. A file with damage is set aside instead.
func (j *Journal) Recycle(id model.FileID) error {
	f, err := j.files.removeSealed("recycle", id)
	if err != nil {
		return err
	}
	j.prep.bulk.Store(false)
	if f.damaged {
		return j.o.FS.Rename(f.Path, j.path(id, format.ExtDamaged))
	}
	if f.size == j.o.FileSize && j.poolHasRoom() {
		s := spare{path: j.path(id, format.ExtSpare), size: f.size}
		if err := j.o.FS.Rename(f.Path, s.path); err != nil {
			return err
		}
		j.pushSpare(s)
		j.prep.nudge()
		return nil
	}
	if err := j.o.FS.Remove(f.Path); err != nil {
		return err
	}
	j.prep.nudge()
	return nil
}

// Release gives a sealed file to the caller, who adopts it as a segment: the
// journal cuts off the unused room and forgets the file. Until the caller has
// moved it out of Dir, Options.Adopted must know it at the next Open.
func (j *Journal) Release(id model.FileID) error {
	f, err := j.files.removeSealed("release", id)
	if err != nil {
		return err
	}
	j.prep.bulk.Store(true)
	if f.size <= f.Bytes {
		return nil
	}
	w, err := j.o.FS.OpenRW(f.Path)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Truncate(f.Bytes); err != nil {
		return err
	}
	return w.Sync()
}

// Read yields the entries of the durable frames from LSN from on that the
// journal still holds, in order. Data is valid until the next one is yielded.
func (j *Journal) Read(ctx context.Context, from model.LSN) iter.Seq2[storage.Located, error] {
	return func(yield func(storage.Located, error) bool) {
		durable := j.Durable()
		j.files.mu.Lock()
		var list []file
		for _, f := range j.files.byID {
			if f.live || f.LastLSN >= from {
				list = append(list, *f)
			}
		}
		j.files.mu.Unlock()
		slices.SortFunc(list, func(a, b file) int { return cmp.Compare(a.FirstLSN, b.FirstLSN) })
		for i := range list {
			if !j.readFile(ctx, &list[i], from, durable, yield) {
				return
			}
		}
	}
}

// readFile yields one file's entries and reports whether to go on.
func (j *Journal) readFile(ctx context.Context, f *file, from, durable model.LSN, yield func(storage.Located, error) bool) bool {
	r, err := j.o.FS.Open(f.Path)
	if err != nil {
		return yield(storage.Located{}, err) && false
	}
	defer r.Close()
	s := format.NewScanner(r, f.ID, f.size, format.Whole)
	for s.LSN() < durable && (f.live || s.LSN() < f.LastLSN) {
		if err := ctx.Err(); err != nil {
			return yield(storage.Located{}, err) && false
		}
		frame, err := s.Next()
		if err != nil {
			// At or below what was durable a frame must be there.
			return yield(storage.Located{}, &model.Error{Class: model.ClassCorrupt, Op: "read journal", Object: f.Path, Cause: err}) && false
		}
		if frame.LSN < from || frame.LSN > durable {
			continue
		}
		for _, it := range frame.Items {
			if !yield(storage.Located{LSN: frame.LSN, Entry: it.Entry}, nil) {
				return false
			}
		}
	}
	return true
}
