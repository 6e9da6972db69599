package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// hole is a run of offsets that must be somewhere and are in no file.
type hole struct {
	part       model.PartitionID
	base, last model.Offset
	before     *place // of the entry before it; nil if there is none
	after      *place // of the entry behind it; nil if there is none
}

// place is where an entry lies.
type place struct {
	file *File
	span span
}

// log is what the files say of one partition.
type log struct {
	start  model.Offset
	end    model.Offset // that the checkpoint knows of
	places []place
}

// holes finds the offsets that no file holds, of partitions that were not dropped.
func (d *Dir) holes(r *Report) []Finding {
	logs := make(map[model.PartitionID]*log)
	for _, p := range d.check.Partitions {
		logs[p.ID] = &log{start: p.Start, end: max(p.End, p.UpTo)}
	}
	for _, c := range r.scans {
		if c.file.Role != RoleSegment && c.file.Role != RoleAdopted {
			continue
		}
		for _, s := range c.spans {
			l := logs[s.part]
			if l == nil && d.lost {
				l = &log{start: -1}
				logs[s.part] = l
			}
			if l != nil && s.kind == storage.EntryBatches { // else it was dropped
				l.places = append(l.places, place{c.file, s})
			}
		}
	}
	for _, c := range r.scans {
		if c.file.Role == RoleJournal {
			d.replay(logs, c)
		}
	}
	var all []Finding
	for _, id := range slices.SortedFunc(maps.Keys(logs), model.PartitionID.Compare) {
		all = append(all, logs[id].holes(id)...)
	}
	return all
}

// replay takes in the entries of a journal file, as a start does.
func (d *Dir) replay(logs map[model.PartitionID]*log, c *scan) {
	for _, s := range c.spans {
		if s.lsn < d.check.From {
			continue
		}
		l := logs[s.part]
		if l == nil {
			l = &log{}
			if d.lost {
				l.start = -1
			}
			logs[s.part] = l
		}
		switch s.kind {
		case storage.EntryBatches:
			l.places = append(l.places, place{c.file, s})
		case storage.EntryTrim:
			l.start = max(l.start, s.base)
		case storage.EntryDrop:
			delete(logs, s.part)
		}
	}
}

func (l *log) holes(id model.PartitionID) (all []Finding) {
	slices.SortStableFunc(l.places, func(a, b place) int { return cmp.Compare(a.span.base, b.span.base) })
	next := l.start
	var before *place
	note := func(last model.Offset, after *place) {
		h := &hole{part: id, base: next, last: last, before: before, after: after}
		all = append(all, Finding{
			Damage: true, Kind: KindHole, Partitions: []Range{{id.String(), next, last}}, hole: h,
			What:   "these offsets are in no file",
			Remedy: fmt.Sprintf("readers get an error there and go on from offset %d; `daybook log repair` lets them pass where a damaged file held them", last+1),
		})
	}
	for i := range l.places {
		p := &l.places[i]
		if p.span.last < next {
			continue
		}
		if next >= 0 && p.span.base > next {
			note(p.span.base-1, p)
		}
		next, before = p.span.last+1, p
	}
	if next >= 0 && next < l.end {
		note(l.end-1, nil)
	}
	return all
}

// checkIndexes reads each index whole and compares it with its data file.
func (d *Dir) checkIndexes(ctx context.Context, r *Report) error {
	for _, c := range r.scans {
		if c.file.Role != RoleSegment && c.file.Role != RoleAdopted {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name := format.FileName(c.file.ID, format.ExtIndex)
		err := d.checkIndex(c, name)
		if err == nil {
			continue
		}
		if _, gone := d.fs.Size(path.Join(d.path, c.file.Name)); errors.Is(gone, fs.ErrNotExist) {
			continue // a live broker has removed both
		}
		r.Findings = append(r.Findings, Finding{Damage: true, Kind: KindIndex, File: name, What: err.Error(),
			Remedy: "no records are lost; the next start builds it again from " + c.file.Name})
	}
	return nil
}

func (d *Dir) checkIndex(c *scan, name string) error {
	f, err := d.fs.Open(path.Join(d.path, name))
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	sum, err := index.Load(f, size)
	if err != nil {
		return err
	}
	if sum.File != c.file.ID {
		return fmt.Errorf("it is the index of file %016x", uint64(sum.File))
	}
	data, err := d.fs.Open(path.Join(d.path, c.file.Name))
	if err != nil {
		return err
	}
	defer data.Close()
	for _, run := range sum.Runs {
		blocks, err := index.LoadBlocks(f, run.Section)
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if err := c.checkBlock(data, run.Part, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBlock compares a block with the bytes that it names, unless those are
// damaged themselves.
func (c *scan) checkBlock(data vfs.File, part model.PartitionID, b index.Block) error {
	end := b.Pos + int64(b.Len)
	for i := range c.bad {
		if b.Pos < c.bad[i].end && c.bad[i].pos < end {
			return nil
		}
	}
	buf := make([]byte, b.Len)
	if end > c.file.Size {
		return fmt.Errorf("partition %s offsets %d to %d: a block beyond the end of the data file", part, b.Base, b.Last)
	}
	if _, err := data.ReadAt(buf, b.Pos); err != nil {
		return err
	}
	if crc32.Checksum(buf, model.Castagnoli) != b.CRC {
		return fmt.Errorf("partition %s offsets %d to %d: the block's checksum is not that of the data file", part, b.Base, b.Last)
	}
	return nil
}
