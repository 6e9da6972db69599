package partlog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"sync/atomic"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

const (
	// blockBytes is what small batches are coalesced to; one read brings a block.
	blockBytes = 128 << 10
	// frameBytes ends a frame of a segment.
	frameBytes = 1 << 20
	// syncBytes is how much of a segment may wait for its sync: a large one at
	// the end would hold up the journal's.
	syncBytes = 8 << 20
)

// segment is a data file with an index, which the journal no longer owns.
type segment struct {
	data, idx *datafile.File
	size      int64 // bytes of the data file
	bytes     int64 // of batches in it, as the index says
	adopted   bool

	live  atomic.Int64 // bytes of the spans that logs refer to
	spans atomic.Int64 // how many
}

func (s *segment) id() model.FileID { return s.data.ID }

// count sums up what the index says.
func (s *segment) count(runs []index.Run) {
	s.bytes = 0
	for _, r := range runs {
		s.bytes += r.Bytes
	}
}

// pin keeps both files; the index is retired after the data file.
func (s *segment) pin() { s.data.Pin() }

func (s *segment) unpin() { s.data.Unpin() }

// refer and unrefer count a log's use of a span.
func refer(sp span) {
	sp.seg.live.Add(sp.bytes)
	sp.seg.spans.Add(1)
}

func (s *Store) unrefer(sp span) {
	sp.seg.live.Add(-sp.bytes)
	if sp.seg.spans.Add(-1) == 0 {
		s.keeper.garbage.Store(true)
	}
	s.stats.spansChanged.Store(true)
}

func spanOf(seg *segment, r index.Run) span {
	return span{seg: seg, base: r.Base, last: r.Last, maxTs: r.MaxTimestamp, bytes: r.Bytes, sec: r.Section}
}

// newSegment registers the files of a segment.
func (s *Store) newSegment(id model.FileID, size int64, adopted bool) *segment {
	seg := &segment{
		data: s.files.Add(id, s.path(id, format.ExtData)), idx: s.files.Add(id, s.path(id, format.ExtIndex)),
		size: size, adopted: adopted,
	}
	return seg
}

// made is a segment that is on disk and not yet in any log.
type made struct {
	seg  *segment
	runs []index.Run
}

// segmentWriter writes one segment: blocks in, data file and index out.
type segmentWriter struct {
	s   *Store
	id  model.FileID
	w   *format.Writer
	idx index.Builder

	entries []storage.Entry // of the frame that is being gathered
	bytes   int
	dirty   int // bytes since the last sync
	open    []openBlock
	broken  bool // the next block begins a run
}

// openBlock is a block whose position is known when its frame is written.
type openBlock struct {
	part   model.PartitionID
	entry  int // its first entry in the frame
	breaks bool
	blk    index.Block
}

func (s *Store) createSegment() (*segmentWriter, error) {
	id := s.newFileID()
	w, err := format.Create(s.fs, s.path(id, format.ExtData), format.FileHeader{
		Kind: format.KindSegment, ID: id, Incarnation: uint64(s.incarnation),
	})
	if err != nil {
		return nil, err
	}
	return &segmentWriter{s: s, id: id, w: w}, nil
}

// breakRun makes the next block begin a new run.
func (w *segmentWriter) breakRun() { w.broken = true }

// add appends batches of p that cover the offsets of b; b.Pos is not looked at.
// Partitions come one after the other, each in offset order. data must stay as it
// is until the frame is written.
func (w *segmentWriter) add(p model.PartitionID, b index.Block, data []byte) error {
	n := len(w.open)
	if n > 0 && !w.broken && w.open[n-1].part == p && w.open[n-1].blk.Last+1 == b.Base && int(w.open[n-1].blk.Len)+len(data) <= blockBytes {
		blk := &w.open[n-1].blk
		blk.Last, blk.Len = b.Last, blk.Len+uint32(len(data))
		blk.MaxTimestamp = max(blk.MaxTimestamp, b.MaxTimestamp)
		blk.CRC = crc32.Update(blk.CRC, model.Castagnoli, data)
	} else {
		b.Len, b.CRC = uint32(len(data)), crc32.Checksum(data, model.Castagnoli)
		w.open = append(w.open, openBlock{p, len(w.entries), w.broken, b})
		w.broken = false
	}
	w.entries = append(w.entries, storage.Entry{
		Kind: storage.EntryBatches, Part: p, Base: b.Base, Last: b.Last, MaxTimestamp: b.MaxTimestamp, Data: data,
	})
	w.bytes += len(data)
	if w.bytes >= frameBytes {
		return w.flush()
	}
	return nil
}

// flush writes the gathered frame and gives its blocks to the index.
func (w *segmentWriter) flush() error {
	if len(w.entries) == 0 {
		return nil
	}
	if err := w.w.Append(w.entries); err != nil {
		return err
	}
	for _, o := range w.open {
		o.blk.Pos = w.entries[o.entry].At.Pos
		if o.breaks {
			w.idx.Break()
		}
		w.idx.Add(o.part, o.blk)
	}
	w.s.stats.segmentBytes.Add(int64(w.bytes))
	if w.dirty += w.bytes; w.dirty >= syncBytes {
		w.dirty = 0
		if err := w.w.SyncData(); err != nil {
			return err
		}
	}
	clear(w.entries)
	w.entries, w.open, w.bytes = w.entries[:0], w.open[:0], 0
	return nil
}

// size is the length of the data file with what is gathered.
func (w *segmentWriter) size() int64 { return w.w.Size() + int64(w.bytes) }

// finish makes data and index durable, but for their names: the caller syncs
// the directory.
func (w *segmentWriter) finish() (made, error) {
	if err := w.flush(); err != nil {
		return made{}, err
	}
	if err := w.w.Finish(); err != nil {
		return made{}, err
	}
	seg := w.s.newSegment(w.id, w.w.Size(), false)
	runs, err := w.s.writeIndex(&w.idx, seg)
	return made{seg, runs}, err
}

// abort removes what was written so far.
func (w *segmentWriter) abort() error {
	return errors.Join(w.w.Abort(), removeIfThere(w.s.fs, w.s.path(w.id, format.ExtIndex)))
}

// writeIndex writes a segment's index, replacing one that is there.
func (s *Store) writeIndex(b *index.Builder, seg *segment) ([]index.Run, error) {
	buf, sum := b.Encode(seg.id(), seg.size)
	name := s.path(seg.id(), format.ExtIndex)
	if err := removeIfThere(s.fs, name); err != nil {
		return nil, err
	}
	f, err := s.fs.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(buf, 0); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	s.stats.indexBytes.Add(int64(len(buf)))
	seg.count(sum.Runs)
	return sum.Runs, nil
}

func removeIfThere(fsys vfs.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
