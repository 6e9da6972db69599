package inspect

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// mender makes the mended copy of one data file. Good frames keep their place, so
// that positions in them stay true; each bad run is filled with as many frames as
// it lost, the last of them as long as the room up to the next good frame.
type mender struct {
	d      *Dir
	c      *scan
	header bool
	runs   []*Finding
	fixed  map[*badRun][]byte  // the whole run, where flipping one bit back makes it right
	fill   map[*badRun][]*hole // offsets whose loss the run explains
}

func newMender(d *Dir, c *scan, r *Report, runs []*Finding, header bool) (*mender, error) {
	m := &mender{d: d, c: c, header: header, runs: runs, fixed: make(map[*badRun][]byte), fill: make(map[*badRun][]*hole)}
	for i := range r.Findings {
		h := r.Findings[i].hole
		if h == nil {
			continue
		}
		if owner, run := r.explain(h); owner == c && run != nil {
			m.fill[run] = append(m.fill[run], h)
		}
	}
	from, err := d.fs.Open(path.Join(d.path, c.file.Name))
	if err != nil {
		return nil, err
	}
	defer from.Close()
	for _, f := range runs {
		if b := fixBit(from, c, f); b != nil {
			m.fixed[f.run] = b
		}
	}
	return m, nil
}

// fixBit gives the bytes of a run that is one frame with one flipped bit, right
// again; nil if it is not that, or if the frame's batches say that it is not right.
func fixBit(from vfs.File, c *scan, f *Finding) []byte {
	n := f.End - f.Pos
	if f.FirstLSN != f.LastLSN || n > format.MaxFrame {
		return nil
	}
	b := make([]byte, n)
	if _, err := from.ReadAt(b, f.Pos); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	var frame format.Frame
	if _, ok := format.FixBit(b); !ok || frame.Decode(b, f.Pos) != nil || frame.LSN != f.FirstLSN || frame.File != c.file.ID {
		return nil
	}
	if f.run.next != 0 && int64(frame.Length) != n {
		return nil
	}
	for i := range frame.Items {
		it := &frame.Items[i]
		if len(salvage(it.Data, it.Base, it.Last)) != len(it.Data) {
			return nil
		}
	}
	return b[:frame.Length]
}

// explain finds the bad run that may have held the hole's offsets: the first that
// lies between the entries before and after it, else the first of all (after a
// merge the order of files is not that of offsets).
func (r *Report) explain(h *hole) (owner *scan, run *badRun) {
	for i := range r.Findings {
		bad := r.Findings[i].run
		if bad == nil || bad.complete {
			continue
		}
		for _, c := range r.scans {
			if c.file.Name != r.Findings[i].File {
				continue
			}
			if h.mayLieIn(c.file, bad) {
				return c, bad
			}
			if run == nil {
				owner, run = c, bad
			}
		}
	}
	return owner, run
}

func (h *hole) mayLieIn(f *File, run *badRun) bool {
	behind := h.before != nil && h.before.file.ID == f.ID
	ahead := h.after != nil && h.after.file.ID == f.ID
	switch {
	case behind && run.pos < h.before.span.pos, ahead && run.pos > h.after.span.pos:
		return false
	case behind || ahead:
		return true
	}
	return (h.before == nil || h.before.file.ID < f.ID) && (h.after == nil || f.ID < h.after.file.ID)
}

func (m *mender) describe() string {
	var parts []string
	if m.header {
		parts = append(parts, "write the file header again")
	}
	for _, f := range m.runs {
		s := fmt.Sprintf("bytes %d to %d: ", f.Pos, f.End)
		if m.fixed[f.run] != nil {
			s += "flip the one bit back that is wrong; nothing is lost"
		} else if f.run.complete {
			s += "keep the batches that can be read, pass over the rest"
		} else {
			s += fmt.Sprintf("fill LSN %d to %d", f.FirstLSN, f.LastLSN)
			for _, h := range m.fill[f.run] {
				s += fmt.Sprintf(", pass over %s offsets %d to %d", h.part, h.base, h.last)
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// write makes the mended copy durable under the name.
func (m *mender) write(name string) error {
	from, err := m.d.fs.Open(path.Join(m.d.path, m.c.file.Name))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := m.d.fs.Create(name)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := copyBytes(from, to, m.c.file.Size); err != nil {
		return err
	}
	if m.header {
		if err := m.writeHeader(to); err != nil {
			return err
		}
	}
	for _, f := range m.runs {
		if err := m.mend(from, to, f); err != nil {
			return err
		}
	}
	if err := to.Sync(); err != nil {
		return err
	}
	return m.d.fs.SyncDir(m.d.path)
}

func copyBytes(from, to vfs.File, size int64) error {
	buf := make([]byte, 1<<20)
	for pos := int64(0); pos < size; {
		n, err := from.ReadAt(buf[:min(int64(len(buf)), size-pos)], pos)
		if n == 0 {
			// A sector that the disk does not give: the copy has zeros there, and
			// what it held is among the findings.
			n, err = int(min(format.Align, size-pos)), nil
			clear(buf[:n])
		}
		if err != nil && !errors.Is(err, io.EOF) && n == 0 {
			return err
		}
		if _, err := to.WriteAt(buf[:n], pos); err != nil {
			return err
		}
		pos += int64(n)
	}
	return nil
}

func (m *mender) writeHeader(to vfs.File) error {
	h := format.FileHeader{Kind: format.KindJournal, ID: m.c.file.ID, FirstLSN: m.c.first}
	if m.c.file.Role == RoleSegment {
		h.Kind = format.KindSegment
	}
	for _, f := range m.runs {
		h.FirstLSN = min(h.FirstLSN, f.FirstLSN)
	}
	_, err := to.WriteAt(h.Encode(), 0)
	return err
}

// mend fills one bad run.
func (m *mender) mend(from, to vfs.File, f *Finding) error {
	run, end := f.run, format.Padded(f.End)
	if b := m.fixed[run]; b != nil {
		_, err := to.WriteAt(b, run.pos)
		return err
	}
	entries, err := m.entries(from, run)
	if err != nil {
		return err
	}
	tail := run.next == 0
	pos := run.pos
	for lsn := f.FirstLSN; lsn <= f.LastLSN; lsn++ {
		h := format.FrameHeader{File: m.c.file.ID, LSN: lsn, Durable: lsn - 1}
		if m.c.file.Role == RoleSegment {
			h.Flags, h.Durable = format.FlagSegment, 0
		}
		var b format.Builder
		if lsn == f.LastLSN {
			for i := range entries {
				b.Add(&entries[i])
			}
			switch {
			case !tail:
				h.Length = uint32(min(max(end-pos, 0), format.MaxFrame))
			case m.c.file.Role != RoleJournal:
				h.Flags |= format.FlagLast
			}
		}
		vecs, err := b.Encode(&h, pos)
		if err != nil {
			return err
		}
		if _, err := to.WriteVec(vecs, pos); err != nil {
			return err
		}
		pos += int64(h.Length)
	}
	if !tail && pos != end {
		return fmt.Errorf("bytes %d to %d: %d frames with %d entries do not fill the place; restore the file from a backup",
			run.pos, end, f.LastLSN-f.FirstLSN+1, len(entries))
	}
	if size, err := to.Size(); err != nil || size >= m.c.file.want {
		return err
	}
	return to.Truncate(m.c.file.want) // the length that the checkpoint knows
}

// entries are what stands in the place of a bad run: its own with the batches
// that can be read, or entries without data over the offsets that are lost.
func (m *mender) entries(from vfs.File, run *badRun) ([]storage.Entry, error) {
	var all []storage.Entry
	for _, h := range m.fill[run] {
		all = append(all, storage.Entry{Kind: storage.EntryBatches, Part: h.part, Base: h.base, Last: h.last, MaxTimestamp: -1})
	}
	for _, it := range run.items {
		e := it.Entry
		if it.Size > 0 {
			buf := make([]byte, it.Size)
			if _, err := from.ReadAt(buf, it.At.Pos); err != nil && !errors.Is(err, io.EOF) {
				buf = nil // the disk does not give it: all of it is lost
			}
			e.Data = salvage(buf, it.Base, it.Last)
		}
		all = append(all, e)
	}
	return all, nil
}

// salvage gives the batches in data that are whole and in their place. Their
// checksum does not cover the leader epoch: one that is neither the epoch of the
// batch before nor of the one behind is not believed.
func salvage(data []byte, base, last model.Offset) []byte {
	var all []model.Batch
	for rest := data; len(rest) > 0; {
		b, after, err := model.NextBatch(rest)
		if err != nil {
			break // where the next batch starts cannot be told
		}
		all, rest = append(all, b), after
	}
	var kept []byte
	next := base
	for i, b := range all {
		if b.Magic() != 2 || !b.ValidCRC() || b.BaseOffset() < next || b.LastOffset() > last {
			continue
		}
		alone := len(all) == 1
		likeBefore := i > 0 && all[i-1].LeaderEpoch() == b.LeaderEpoch()
		likeBehind := i+1 < len(all) && all[i+1].LeaderEpoch() == b.LeaderEpoch()
		if !alone && !likeBefore && !likeBehind {
			continue
		}
		kept = append(kept, b...)
		next = b.LastOffset() + 1
	}
	return kept
}
