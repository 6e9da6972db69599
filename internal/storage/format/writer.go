package format

import (
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Writer writes a new data file, frame by frame. It is not for concurrent use.
type Writer struct {
	fs    vfs.FS
	path  string
	f     vfs.File
	id    model.FileID
	kind  Kind
	lsn   model.LSN
	pos   int64
	build Builder
	pre   []byte // the header block, until the first frame is written
}

// Create makes the file at path. A zero FirstLSN means 1.
func Create(fs vfs.FS, path string, h FileHeader) (*Writer, error) {
	if h.FirstLSN == 0 {
		h.FirstLSN = 1
	}
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	return &Writer{fs: fs, path: path, f: f, id: h.ID, kind: h.Kind, lsn: h.FirstLSN, pos: HeaderSize, pre: h.Encode()}, nil
}

// Append writes the entries as one frame and sets their At.
func (w *Writer) Append(entries []storage.Entry) error { return w.append(entries, 0) }

// SyncData makes what was written so far durable: a large file that is synced now
// and then does not hold up other files' syncs at its end.
func (w *Writer) SyncData() error { return w.f.SyncData() }

// Size is the length of the file so far.
func (w *Writer) Size() int64 { return w.pos }

// Finish writes the closing frame, makes the bytes durable and closes the file.
// The name is durable when the caller has synced the directory.
func (w *Writer) Finish() error {
	if err := w.append(nil, FlagLast); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	return w.f.Close()
}

// Abort closes the file and removes it.
func (w *Writer) Abort() error {
	err := w.f.Close()
	if rerr := w.fs.Remove(w.path); rerr != nil {
		return rerr
	}
	return err
}

func (w *Writer) append(entries []storage.Entry, flags Flags) error {
	w.build.Reset()
	for i := range entries {
		w.build.Add(&entries[i])
	}
	if w.kind == KindSegment {
		flags |= FlagSegment
	}
	h := FrameHeader{File: w.id, LSN: w.lsn, Flags: flags}
	vecs, err := w.build.Encode(&h, w.pos)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	if w.pre != nil {
		if _, err := w.f.WriteAt(w.pre, 0); err != nil {
			return err
		}
		w.pre = nil
	}
	if _, err := w.f.WriteVec(vecs, w.pos); err != nil {
		return err
	}
	w.pos += int64(h.Length)
	w.lsn++
	return nil
}
