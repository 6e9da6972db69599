package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
)

// Open reads the journal files in Dir in LSN order and calls replay for each
// entry of the frames from LSN from on (what is below is durable elsewhere). The
// entry's Data is valid only during the call. Then the journal is ready to
// append, in a new file. An error of replay ends Open with that error.
//
// A torn tail is cut off. Damage does not stop the start: see Damage. ClassUnsupported
// means that a newer Daybook wrote a file.
func Open(ctx context.Context, o Options, from model.LSN, replay func(storage.Located) error) (*Journal, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := o.FS.MkdirAll(o.Dir); err != nil {
		return nil, err
	}
	j := &Journal{o: o, log: o.Logger, wake: make(chan struct{}, 1), ended: make(chan struct{}), stop: make(chan struct{})}
	j.prep.ready = make(chan *prepared, 1)
	j.prep.stalled = make(chan struct{}, 1)
	j.prep.kick = make(chan struct{}, 1)
	r := recovery{j: j, ctx: ctx, from: max(from, 1), replay: replay}
	if err := r.run(); err != nil {
		return nil, err
	}
	j.com.next = r.next
	j.com.marked = true
	j.durable.Store(uint64(r.next - 1))
	j.checkSpace()
	j.prepWG.Add(1)
	go j.prepare()
	go j.run()
	return j, nil
}

// complete checks the options and sets the defaults.
func (o *Options) complete() error {
	if o.FileSize == 0 {
		o.FileSize = DefaultFileSize
	}
	most := min(o.FileSize-format.HeaderSize-format.MarkSize, format.MaxFrame)
	if o.MaxGroup == 0 {
		o.MaxGroup = min(DefaultMaxGroup, most)
	}
	if o.PoolFiles == 0 {
		o.PoolFiles = defaultPool
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FileSize < minFileSize || o.FileSize%format.HeaderSize != 0 || o.MaxGroup > most {
		return &model.Error{Class: model.ClassInvalid, Op: "open journal", Detail: fmt.Sprintf(
			"a file size of %d with groups of up to %d bytes cannot be; use a multiple of %d, at least %d, that a group fits in",
			o.FileSize, o.MaxGroup, format.HeaderSize, minFileSize)}
	}
	return nil
}

// recovery reads the files at start.
type recovery struct {
	j      *Journal
	ctx    context.Context
	from   model.LSN
	replay func(storage.Located) error
	// next is the LSN that must come now; 0 before the first frame.
	next model.LSN
	// promised is the last LSN that some frame said was durable.
	promised model.LSN
	found    []*found
}

// found is a file in the directory.
type found struct {
	file
	header error     // why the header cannot be used; nil if it can
	blank  bool      // neither header nor frame of this file: it was only prepared
	some   model.LSN // without a header, FirstLSN is not known; this frame was found
}

func (r *recovery) run() error {
	r.promised = r.from - 1
	if err := r.list(); err != nil {
		return err
	}
	for i, f := range r.found {
		if f.blank {
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if next := r.content(i + 1); next != nil && next.header == nil && next.FirstLSN <= r.from && r.next == 0 {
			// All of f lies below from: it need not be read.
			f.LastLSN, f.Bytes = next.FirstLSN-1, f.size
			r.seal(f)
			continue
		}
		if err := r.scan(i); err != nil {
			return err
		}
		if r.content(i+1) == nil {
			if err := r.syncLast(f); err != nil {
				return err
			}
		}
		r.seal(f)
	}
	if r.next = max(r.next, r.from); r.next <= r.promised {
		r.lost(&Damage{FirstLSN: r.next, LastLSN: r.promised, Reason: errMissing})
		r.next = r.promised + 1
	}
	return r.spares()
}

var errMissing = errors.New("frames are missing")

// list finds the files, sorted by id, which is their order in time.
func (r *recovery) list() error {
	o := &r.j.o
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		if !ok || ext == format.ExtData && o.Adopted != nil && o.Adopted(id) {
			continue
		}
		p := path.Join(o.Dir, name)
		size, err := o.FS.Size(p)
		if err != nil {
			return err
		}
		switch ext {
		case format.ExtSpare:
			r.j.pushSpare(spare{p, size})
		case format.ExtData:
			f := &found{file: file{Sealed: Sealed{ID: id, Path: p}, size: size}}
			if err := r.probe(f); err != nil {
				return err
			}
			if f.header != errNotJournal {
				r.found = append(r.found, f)
			}
		}
	}
	slices.SortFunc(r.found, func(a, b *found) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return nil
}

var errNotJournal = errors.New("a segment")

// probe reads a file's header, or where there is none looks for any frame.
func (r *recovery) probe(f *found) error {
	rd, err := r.j.o.FS.Open(f.Path)
	if err != nil {
		return err
	}
	defer rd.Close()
	s := format.NewScanner(rd, f.ID, f.size, format.Whole)
	h, err := s.Header()
	switch {
	case errors.Is(err, format.ErrVersion):
		return &model.Error{
			Class: model.ClassUnsupported, Op: "open journal", Object: f.Path, Cause: err,
			Detail: fmt.Sprintf("the file has format version %d, this Daybook reads up to %d; start a newer one", h.Version, format.Version),
		}
	case err == nil && h.ID == f.ID && h.Kind != format.KindJournal:
		f.header = errNotJournal
		return nil
	case err == nil && h.ID == f.ID:
		f.FirstLSN = h.FirstLSN
		return nil
	case err == nil:
		err = format.ErrStale // the header of a recycled file's earlier life
	}
	f.header = err
	frame, err := s.Next()
	if err != nil && s.Search() {
		frame, err = s.Next()
	}
	switch {
	case err != nil:
		f.blank = true
	case frame.Flags&format.FlagSegment != 0:
		f.header = errNotJournal
	default:
		f.some = frame.LSN
	}
	return nil
}

// content gives the first file from i on that has frames; nil if there is none.
func (r *recovery) content(i int) *found {
	for ; i < len(r.found); i++ {
		if !r.found[i].blank {
			return r.found[i]
		}
	}
	return nil
}

// scan replays the i-th file's frames and settles what a bad one means.
func (r *recovery) scan(i int) error {
	f := r.found[i]
	rd, err := r.j.o.FS.Open(f.Path)
	if err != nil {
		return err
	}
	defer rd.Close()
	s := format.NewScanner(rd, f.ID, f.size, format.Whole)
	if r.next == 0 {
		if r.next = f.FirstLSN; f.header != nil {
			r.next = min(f.some, r.from)
		}
		if r.next > r.from {
			// Frames before this file's first are wanted and not there.
			r.lost(&Damage{FirstLSN: r.from, LastLSN: r.next - 1, Reason: errMissing})
		}
	}
	if f.header != nil {
		if err := r.badHeader(i); err != nil {
			return err
		}
	}
	for {
		frame, err := s.Next()
		bad, isBad := errors.AsType[*format.BadFrame](err)
		switch {
		case err == io.EOF || err == nil && frame.Flags&format.FlagLast != 0:
			if err == nil {
				if err := r.apply(f, frame); err != nil {
					return err
				}
			}
			f.Bytes = min(s.Pos(), f.size)
			return r.fileEnd(i, s.Pos(), errMissing)
		case err == nil:
			err = r.apply(f, frame)
		case isBad:
			var done bool
			if done, err = r.bad(i, s, bad); done {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// badHeader settles what the i-th file's bad header means: damage if anything in
// the file was promised, else a torn first write, which is mended. The frames
// are read in both cases.
func (r *recovery) badHeader(i int) error {
	f := r.found[i]
	if max(r.promised, r.promisedAfter(i, format.HeaderSize)) >= r.next {
		f.damaged = true
		r.lost(&Damage{File: f.ID, Path: f.Path, End: format.HeaderSize, Complete: true, Reason: f.header})
		return nil
	}
	w, err := r.j.o.FS.OpenRW(f.Path)
	if err != nil {
		return err
	}
	defer w.Close()
	h := format.FileHeader{Kind: format.KindJournal, ID: f.ID, FirstLSN: r.next, Incarnation: r.j.o.Incarnation}
	if _, err := w.WriteAt(h.Encode(), 0); err != nil {
		return err
	}
	return w.Sync()
}

// apply takes a good frame in.
func (r *recovery) apply(f *found, frame *format.Frame) error {
	if frame.LSN > r.next {
		// Only reached where no bad frame was met on the way: a file is gone.
		r.lost(&Damage{FirstLSN: r.next, LastLSN: frame.LSN - 1, Reason: errMissing})
	}
	r.next = frame.LSN + 1
	r.promised = max(r.promised, frame.Durable)
	if f.LastLSN = frame.LSN; f.FirstLSN == 0 {
		f.FirstLSN = frame.LSN
	}
	f.Entries += len(frame.Items)
	for _, it := range frame.Items {
		f.DataBytes += it.Size
		if frame.LSN < r.from {
			continue
		}
		if err := r.replay(storage.Located{LSN: frame.LSN, Entry: it.Entry}); err != nil {
			return err
		}
	}
	return nil
}

// bad settles what the bad frame at s.Pos means: the end of the file (done), or
// damage, after which it goes on with the next good frame.
func (r *recovery) bad(i int, s *format.Scanner, bad *format.BadFrame) (done bool, err error) {
	f := r.found[i]
	pos := bad.Pos
	if next := r.content(i + 1); next != nil && next.header == nil && next.FirstLSN == r.next {
		f.Bytes = pos
		return true, nil // the usual end of a full file
	}
	head := bad.Head
	var items []format.Item
	if head != nil && head.LSN == r.next {
		items = slices.Clone(head.Items)
	} else {
		head = nil
	}
	after := r.promisedAfter(i, pos)
	if max(r.promised, after) < r.next {
		f.Bytes = pos
		return true, r.cut(f, pos)
	}
	d := &Damage{File: f.ID, Path: f.Path, Pos: pos, FirstLSN: r.next, Reason: bad.Err, Items: items}
	f.damaged = true
	if head != nil {
		d.End, d.LastLSN, d.Complete = pos+int64(head.Length), head.LSN, true
		s.SkipTo(d.End)
		r.lost(d)
		r.next = d.LastLSN + 1
		return false, nil
	}
	if !s.Search() {
		f.Bytes = f.size
		return true, r.fileEnd(i, pos, bad.Err)
	}
	d.End = s.Pos()
	frame, err := s.Next()
	if err != nil {
		return true, err
	}
	d.LastLSN = frame.LSN - 1
	r.lost(d)
	r.next = frame.LSN
	return false, r.apply(f, frame)
}

// fileEnd checks that what comes after the i-th file continues it; the frames
// in between were in its bytes from pos on, or in a file that is gone.
func (r *recovery) fileEnd(i int, pos int64, reason error) error {
	f := r.found[i]
	last := r.promised
	if next := r.content(i + 1); next != nil {
		if next.header != nil {
			return nil // its scan finds what is missing
		}
		last = next.FirstLSN - 1
	}
	if last < r.next {
		return nil
	}
	r.lost(&Damage{File: f.ID, Path: f.Path, Pos: pos, End: f.size, FirstLSN: r.next, LastLSN: last, Reason: reason})
	f.damaged = true
	r.next = last + 1
	return nil
}

// promisedAfter is the largest promise in the frames after position pos of the
// i-th file, in this file and the next that has any.
func (r *recovery) promisedAfter(i int, pos int64) model.LSN {
	promised := r.promisedIn(r.found[i], pos)
	if next := r.content(i + 1); next != nil {
		promised = max(promised, r.promisedIn(next, format.HeaderSize))
	}
	return promised
}

func (r *recovery) promisedIn(f *found, pos int64) (promised model.LSN) {
	rd, err := r.j.o.FS.Open(f.Path)
	if err != nil {
		return 0
	}
	defer rd.Close()
	s := format.NewScanner(rd, f.ID, f.size, format.Heads)
	s.SkipTo(pos)
	for {
		frame, err := s.Next()
		switch {
		case err == nil:
			promised = max(promised, frame.Durable)
		case err == io.EOF || !s.Search():
			return promised
		}
	}
}

// cut removes a torn tail: the file ends at pos from now on, durably, so that
// nothing of what lay there can be taken for a frame later.
func (r *recovery) cut(f *found, pos int64) error {
	w, err := r.j.o.FS.OpenRW(f.Path)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Truncate(pos); err != nil {
		return err
	}
	r.j.log.Info("journal tail cut off", "path", f.Path, "position", pos, "bytes", f.size-pos, "next_lsn", uint64(r.next))
	f.size = pos
	return w.Sync()
}

// syncLast makes the last file durable before anything is built on it: what a
// killed process wrote may be read, and still be only in the system's memory.
// The files before it were synced when they were sealed.
func (r *recovery) syncLast(f *found) error {
	w, err := r.j.o.FS.OpenRW(f.Path)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Sync()
}

// lost records damage, if it touches what is still needed.
func (r *recovery) lost(d *Damage) {
	if d.File == 0 && r.j.o.Settled != nil && r.j.o.Settled(d.FirstLSN, d.LastLSN) {
		return
	}
	if d.LastLSN < r.from && d.LastLSN > 0 {
		r.j.log.Warn("damage in journal frames that are not needed any more", "damage", d.String())
		return
	}
	r.j.log.Error("journal damage", "damage", d.String())
	r.j.damage = append(r.j.damage, *d)
}

// seal registers a file that was read. One without a good frame is blank from now on.
func (r *recovery) seal(f *found) {
	if f.LastLSN == 0 && !f.damaged {
		f.blank = true
		return
	}
	if f.Bytes == 0 {
		f.Bytes = f.size
	}
	file := f.file
	r.j.files.add(&file)
	if r.j.o.OnSeal != nil {
		r.j.o.OnSeal(file.Sealed)
	}
}

// spares turns files that were only prepared into spares. Where frames are
// missing at the end such a file may have held them, so it is set aside.
func (r *recovery) spares() error {
	o := &r.j.o
	missing := slices.ContainsFunc(r.j.damage, func(d Damage) bool { return d.File == 0 })
	for _, f := range r.found {
		if !f.blank {
			continue
		}
		ext := format.ExtSpare
		if missing {
			ext = format.ExtDamaged
		}
		to := r.j.path(f.ID, ext)
		if err := o.FS.Rename(f.Path, to); err != nil {
			return err
		}
		if !missing {
			r.j.pushSpare(spare{to, f.size})
		}
	}
	p := &r.j.prep
	for i := 0; i < len(p.mu.spares); {
		if s := p.mu.spares[i]; s.size != o.FileSize || len(p.mu.spares) > o.PoolFiles+1 {
			if err := o.FS.Remove(s.path); err != nil {
				return err
			}
			p.mu.spares = slices.Delete(p.mu.spares, i, i+1)
			continue
		}
		i++
	}
	return nil
}
