package partlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

const (
	// bulkRun and bulkShare are the mean sizes, of what of a log lies together
	// and of a log's share, from which on a journal file is adopted as it is.
	bulkRun   = 8 << 10
	bulkShare = 32 << 10
	// gatherEntries and gatherAge bound the wait for more sealed files, beside
	// a quarter of the journal cap.
	gatherEntries = 512 << 10
	gatherAge     = 2 * time.Minute
	// adoptAge lets what was just written be read from memory first.
	adoptAge = 5 * time.Second
)

// sealedFile is a journal file that is complete and still to be settled.
type sealedFile struct {
	journal.Sealed
	content *journalFile // nil when no batches lie in it
	at      time.Time
}

// bulk reports that the file's extents are long enough to stay where they are.
func (f *sealedFile) bulk() bool {
	c := f.content
	return c != nil && c.bytes >= int64(c.runs)*bulkRun && c.bytes >= int64(len(c.logs))*bulkShare
}

// step is what to do with the oldest sealed files.
type step struct {
	files int // how many; 0 means wait
	adopt bool
}

// nextStep decides. Files are settled in order, so that the journal is always
// needed from one LSN on.
func nextStep(sealed []*sealedFile, journalCap int64, now time.Time) step {
	if len(sealed) == 0 {
		return step{}
	}
	if sealed[0].bulk() {
		if len(sealed) > 1 || now.Sub(sealed[0].at) >= adoptAge {
			return step{files: 1, adopt: true}
		}
		return step{}
	}
	var bytes int64
	n, entries, more := 0, 0, false
	for _, f := range sealed {
		if more = f.bulk() || bytes >= journalCap/4 || entries >= gatherEntries; more {
			break
		}
		n++
		bytes += f.Bytes
		if f.content != nil {
			entries += f.content.entries
		}
	}
	if more || bytes >= journalCap/4 || entries >= gatherEntries || now.Sub(sealed[0].at) >= gatherAge {
		return step{files: n}
	}
	return step{}
}

// share is one log's part of a flush.
type share struct {
	log     *Log
	extents []extent
	data    [][]byte // of each extent, where it is in memory
	bytes   int64
}

// takeShare copies what l has in the files; nothing leaves the log yet.
func (l *Log) takeShare(in map[*journalFile]bool) share {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shareLocked(l.leadingLocked(in))
}

// shareLocked copies the first n extents.
func (l *Log) shareLocked(n int) share {
	sh := share{log: l, extents: slices.Clone(l.extents[:n]), data: make([][]byte, n)}
	for i, e := range sh.extents {
		sh.bytes += int64(e.size)
		if e.slot != nil {
			sh.data[i] = e.slot.data
		}
	}
	return sh
}

// leadingLocked counts the extents, from the first on, that lie in the files.
func (l *Log) leadingLocked(in map[*journalFile]bool) int {
	n := 0
	for n < len(l.extents) && in[l.extents[n].in] {
		n++
	}
	return n
}

// each calls f for the share's batches, in order.
func (sh *share) each(f func(index.Block, []byte) error) error {
	for i := 0; i < len(sh.extents); {
		if sh.data[i] != nil {
			if err := f(sh.extents[i].block(), sh.data[i]); err != nil {
				return err
			}
			i++
			continue
		}
		file, blocks := sh.extents[i].in.file, []index.Block(nil)
		for ; i < len(sh.extents) && sh.data[i] == nil && sh.extents[i].in.file == file; i++ {
			blocks = append(blocks, sh.extents[i].block())
		}
		err := eachBlock(file, blocks, nil, func(b index.Block, data []byte) (bool, error) {
			return true, f(b, data)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// contentOf gives the files' contents as a set, and their logs in order.
func contentOf(files []*sealedFile) (map[*journalFile]bool, []*Log) {
	in := make(map[*journalFile]bool)
	var logs []*Log
	for _, f := range files {
		if f.content != nil {
			in[f.content] = true
			logs = append(logs, f.content.logs...)
		}
	}
	slices.SortFunc(logs, func(a, b *Log) int { return a.id.Compare(b.id) })
	return in, slices.Compact(logs)
}

// flush writes what the logs hold in files to segments, sorted by partition. The
// files' own content is not needed any more once a checkpoint has listed those.
func (s *Store) flush(ctx context.Context, files []*sealedFile) error {
	in, logs := contentOf(files)
	out := output{s: s}
	for _, l := range logs {
		sh := l.takeShare(in)
		if len(sh.extents) == 0 {
			continue // trimmed or dropped
		}
		err := ctx.Err()
		if err == nil {
			err = out.begin(l.id, sh.bytes)
		}
		if err == nil {
			err = sh.each(func(b index.Block, data []byte) error {
				s.pace(ctx, len(data))
				return out.add(l.id, b, data)
			})
		}
		if err != nil {
			return errors.Join(err, out.abort())
		}
	}
	done, err := out.finish()
	if err != nil {
		return errors.Join(err, out.abort())
	}
	s.swap(in, logs, done)
	return nil
}

// adopt makes a sealed journal file a segment: only its index is written.
func (s *Store) adopt(f *sealedFile) error {
	in, logs := contentOf([]*sealedFile{f})
	var idx index.Builder
	for _, l := range logs {
		for _, b := range joined(l.takeShare(in).extents) {
			idx.Add(l.id, b)
		}
	}
	seg := &segment{data: f.content.file, idx: s.files.Add(f.ID, s.path(f.ID, format.ExtIndex)), size: f.Bytes, adopted: true}
	runs, err := s.writeIndex(&idx, seg)
	if err != nil {
		return err
	}
	s.swap(in, logs, []made{{seg, runs}})
	s.keeper.adopted += f.Bytes
	return s.journal.Release(f.ID)
}

// joined gives the extents of one file as blocks, those that lie together as one.
func joined(extents []extent) []index.Block {
	blocks := make([]index.Block, 0, len(extents))
	for _, e := range extents {
		b := e.block()
		if n := len(blocks); n > 0 {
			p := blocks[n-1]
			if p.Pos+int64(p.Len) == b.Pos && p.Last+1 == b.Base && p.Len+b.Len <= blockBytes {
				blocks[n-1] = index.Join(p, b)
				continue
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// swap puts the spans of new segments in the place of the extents in files.
func (s *Store) swap(in map[*journalFile]bool, logs []*Log, done []made) {
	s.addSegments(done)
	spans := spansOf(done)
	for _, l := range logs {
		l.settle(in, spans[l.id])
	}
}

// addSegments registers new segments.
func (s *Store) addSegments(done []made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range done {
		s.segments[m.seg.id()] = m.seg
	}
	s.stats.spansChanged.Store(true)
}

// spansOf gives the spans of new segments by partition.
func spansOf(done []made) map[model.PartitionID][]span {
	spans := make(map[model.PartitionID][]span)
	for _, m := range done {
		for _, r := range m.runs {
			spans[r.Part] = append(spans[r.Part], spanOf(m.seg, r))
		}
	}
	return spans
}

// settle replaces the extents in files by spans that hold the same batches. What
// was trimmed or dropped meanwhile stays gone.
func (l *Log) settle(in map[*journalFile]bool, spans []span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.leadingLocked(in)
	for _, e := range l.extents[:n] {
		l.store.tail.releaseLocked(e.slot)
		l.size.Add(-int64(e.size))
	}
	l.extents = shrink(slices.Delete(l.extents, 0, n))
	if l.dropped {
		return
	}
	for _, sp := range spans {
		if sp.last >= l.Start() {
			refer(sp)
			l.spans = append(l.spans, sp)
			l.size.Add(sp.bytes)
		}
	}
}

// output is the set of segments that one flush or merge writes.
type output struct {
	s    *Store
	w    *segmentWriter // the one being written
	solo bool
	done []made
}

// begin makes w the segment for the next log or series, which brings bytes and
// becomes a run of its own.
func (o *output) begin(p model.PartitionID, bytes int64) error {
	solo := bytes >= o.s.o.soloBytes()
	if o.w != nil && (solo || o.solo || o.w.size()+bytes > o.s.o.mixedBytes()) {
		if err := o.end(); err != nil {
			return err
		}
	}
	o.solo = solo
	if o.w != nil {
		o.w.breakRun()
		return nil
	}
	var err error
	o.w, err = o.s.createSegment()
	return err
}

// add writes a block of the log that was begun. A log that is larger than a file
// may be is spread over several.
func (o *output) add(p model.PartitionID, b index.Block, data []byte) error {
	if o.solo && o.w.size() >= o.s.o.mixedBytes() {
		if err := o.end(); err != nil {
			return err
		}
		var err error
		if o.w, err = o.s.createSegment(); err != nil {
			return err
		}
	}
	return o.w.add(p, b, data)
}

// end finishes the segment that is being written.
func (o *output) end() error {
	if o.w == nil {
		return nil
	}
	m, err := o.w.finish()
	if err != nil {
		return err
	}
	o.w = nil
	o.done = append(o.done, m)
	return nil
}

// finish makes everything durable but the names, which the next checkpoint does
// before anything relies on them.
func (o *output) finish() ([]made, error) {
	err := o.end()
	return o.done, err
}

// abort removes everything that was written.
func (o *output) abort() error {
	var err error
	if o.w != nil {
		err = o.w.abort()
	}
	for _, m := range o.done {
		o.s.blocks.Forget(m.seg.idx)
		m.seg.data.Retire(func() {})
		m.seg.idx.Retire(func() {})
		err = errors.Join(err, o.s.removeSegment(m.seg))
	}
	return err
}

// removeSegment unlinks a segment that no log refers to.
func (s *Store) removeSegment(seg *segment) error {
	return errors.Join(
		removeIfThere(s.fs, seg.idx.Path()),
		removeIfThere(s.fs, seg.data.Path()),
	)
}
