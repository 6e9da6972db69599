package partlog

import (
	"cmp"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

// loadSegments gives the logs their spans from the indexes of the checkpoint's
// segments, and removes what an unfinished flush or merge left behind.
func (s *Store) loadSegments(st checkpoint.State) error {
	runs := make(map[model.PartitionID][]span)
	for _, c := range st.Segments {
		seg := s.newSegment(c.File, c.Size, c.Adopted)
		s.segments[c.File] = seg
		if size, err := s.fs.Size(seg.data.Path()); err != nil || size < c.Size {
			s.log.Error("a segment is missing or cut off; what it held cannot be read, the rest serves",
				"segment", seg.data.Path(), "bytes", size, "want_bytes", c.Size, "err", err)
		}
		sum, err := s.loadIndex(seg)
		if err != nil {
			return err
		}
		for _, r := range sum.Runs {
			runs[r.Part] = append(runs[r.Part], spanOf(seg, r))
		}
	}
	for id, spans := range runs {
		// A partition that the checkpoint does not name has been dropped.
		if s.rebuilt || s.logs[id] != nil {
			s.Log(id).takeSpans(spans)
		}
	}
	return s.removeStrays()
}

// takeSpans makes spans, in any order, the log's. Where two hold the same offsets
// the newer file's is right: it came from a merge whose input is still needed
// by another log.
func (l *Log) takeSpans(spans []span) {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.base, b.base), -cmp.Compare(a.seg.id(), b.seg.id()))
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sp := range spans {
		if l.store.rebuilt {
			l.beginAtLocked(sp.base)
		}
		end := l.End()
		if sp.last < end {
			continue
		}
		if sp.base > end {
			l.damage = append(l.damage, damage{end, sp.base - 1, reasonMissing})
		}
		refer(sp)
		l.spans = append(l.spans, sp)
		l.size.Add(sp.bytes)
		l.end.Store(int64(sp.last) + 1)
	}
}

// loadIndex reads a segment's index, or builds it again from the data file.
func (s *Store) loadIndex(seg *segment) (index.Summary, error) {
	size, err := seg.idx.Size()
	var sum index.Summary
	if err == nil {
		sum, err = index.Load(seg.idx, size)
	}
	switch {
	case err == nil && sum.File == seg.id():
		seg.count(sum.Runs)
		return sum, nil
	case err == nil:
		err = errors.New("the index is another file's")
	case model.ClassOf(err) != model.ClassCorrupt && !errors.Is(err, fs.ErrNotExist):
		return sum, err
	}
	s.log.Error("an index is damaged; it is built again from its data file", "index", seg.idx.Path(), "err", err)
	return s.rebuildIndex(seg)
}

// rebuildIndex scans a data file, leaves out what is damaged, and writes the index.
func (s *Store) rebuildIndex(seg *segment) (index.Summary, error) {
	var idx index.Builder
	if err := s.scanSegment(seg, func(it *format.Item) {
		idx.Add(it.Part, index.Block{
			Pos: it.At.Pos, Base: it.Base, Last: it.Last, MaxTimestamp: it.MaxTimestamp,
			Len: uint32(len(it.Data)), CRC: crc32.Checksum(it.Data, model.Castagnoli),
		})
	}); err != nil {
		s.log.Error("a segment cannot be read; what it held is missing, the rest serves", "segment", seg.data.Path(), "err", err)
		return index.Summary{File: seg.id()}, nil
	}
	runs, err := s.writeIndex(&idx, seg)
	return index.Summary{File: seg.id(), DataSize: seg.size, Runs: runs}, err
}

// scanSegment calls f for each entry of batches in a segment, passing over bad frames.
func (s *Store) scanSegment(seg *segment, f func(*format.Item)) error {
	file, err := s.fs.Open(seg.data.Path())
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return err
	}
	for sc := format.NewScanner(file, seg.id(), min(size, seg.size), format.Whole); ; {
		frame, err := sc.Next()
		if bad, ok := errors.AsType[*format.BadFrame](err); ok {
			s.log.Error("a frame of a segment is damaged", "segment", seg.data.Path(), "position", bad.Pos, "err", bad.Err)
			if sc.Search() {
				continue
			}
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range frame.Items {
			if frame.Items[i].Kind == storage.EntryBatches {
				f(&frame.Items[i])
			}
		}
		if frame.Flags&format.FlagLast != 0 {
			return nil
		}
	}
}

// removeStrays removes segments and indexes that no checkpoint has listed: their
// batches are still where they came from.
func (s *Store) removeStrays() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	removed := 0
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		if !ok || s.segments[id] != nil || (ext != format.ExtIndex && ext != format.ExtData) {
			continue
		}
		name = path.Join(s.dir, name)
		if ext == format.ExtData {
			if segment, err := s.isSegment(name); err != nil || !segment {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := s.fs.Remove(name); err != nil {
			return err
		}
		removed++
	}
	if removed > 0 {
		s.log.Info("removed the files of unfinished background work", "files", removed)
	}
	return nil
}

// isSegment reports whether a data file was written as a segment.
func (s *Store) isSegment(name string) (bool, error) {
	f, err := s.fs.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	buf := make([]byte, format.HeaderSize)
	if _, err := f.ReadAt(buf, 0); err != nil {
		return false, nil // too short for a header: the journal says what it is
	}
	h, err := format.DecodeFileHeader(buf)
	return err == nil && h.Kind == format.KindSegment, nil
}
