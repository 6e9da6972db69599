package inspect

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
)

// scan is what reading one data file found.
type scan struct {
	file     *File
	first    model.LSN // of the good frames; 0 if there is none
	last     model.LSN
	promised model.LSN // the largest that a frame says is durable
	end      int64     // behind the last good frame
	finished bool      // the last frame says that it is the last
	bad      []badRun
	spans    []span
	findings []Finding // on batches

	frames, entries, batches int
	data                     int64
}

// badRun is a run of bytes without a good frame.
type badRun struct {
	pos, end int64
	err      error
	after    model.LSN // of the good frame before; 0 if there is none
	next     model.LSN // of the good frame behind; 0 if there is none
	// items are what was in it, if complete; their Data is nil.
	items    []format.Item
	complete bool
	head     *format.FrameHeader // of the one frame that it is, if complete
}

// span is an entry, as far as offsets go.
type span struct {
	part       model.PartitionID
	kind       storage.EntryKind
	base, last model.Offset
	lsn        model.LSN
	pos        int64
}

// scanFile reads all frames and batches of a file.
func (d *Dir) scanFile(ctx context.Context, f *File) (*scan, error) {
	r, err := d.fs.Open(path.Join(d.path, f.Name))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := &scan{file: f, end: format.HeaderSize}
	s := format.NewScanner(r, f.ID, f.Size, format.Whole)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		frame, err := s.Next()
		bad, isBad := errors.AsType[*format.BadFrame](err)
		switch {
		case err == io.EOF:
			return c, nil
		case isBad:
			if more := c.skip(s, bad); !more {
				return c, nil
			}
		case err != nil:
			return nil, err
		default:
			if c.take(frame); c.finished {
				return c, nil
			}
		}
	}
}

// take counts a good frame.
func (c *scan) take(frame *format.Frame) {
	if n := len(c.bad); n > 0 && c.bad[n-1].next == 0 {
		c.bad[n-1].next = frame.LSN
	}
	if c.first == 0 {
		c.first = frame.LSN
	}
	c.last, c.promised = frame.LSN, max(c.promised, frame.Durable)
	c.end = frame.Pos + int64(frame.Length)
	c.finished = frame.Flags&format.FlagLast != 0
	c.frames++
	c.entries += len(frame.Items)
	for i := range frame.Items {
		it := &frame.Items[i]
		c.data += it.Size
		c.spans = append(c.spans, span{it.Part, it.Kind, it.Base, it.Last, frame.LSN, it.At.Pos})
		if it.Kind == storage.EntryBatches {
			c.checkBatches(frame.LSN, it)
		}
	}
}

// skip goes to the next good frame and notes what lies before it.
func (c *scan) skip(s *format.Scanner, bad *format.BadFrame) (more bool) {
	run := badRun{pos: bad.Pos, err: bad.Err, after: c.last}
	if h := bad.Head; h != nil && (c.last == 0 || h.LSN == c.last+1) {
		head := h.FrameHeader
		run.end, run.complete, run.head, run.items = bad.Pos+int64(h.Length), true, &head, slices.Clone(h.Items)
		run.next = h.LSN + 1
		for _, it := range h.Items {
			c.spans = append(c.spans, span{it.Part, it.Kind, it.Base, it.Last, h.LSN, it.At.Pos})
		}
		c.last, c.promised = h.LSN, max(c.promised, h.Durable)
		if c.first == 0 {
			c.first = h.LSN
		}
		c.bad = append(c.bad, run)
		s.SkipTo(run.end)
		return true
	}
	if more = s.Search(); more {
		run.end = s.Pos()
	} else {
		run.end = c.file.Size
	}
	c.bad = append(c.bad, run)
	return more
}

// checkBatches looks at an entry's batches one by one.
func (c *scan) checkBatches(lsn model.LSN, it *format.Item) {
	pos, next := it.At.Pos, it.Base
	for rest := it.Data; len(rest) > 0; {
		b, after, err := model.NextBatch(rest)
		switch {
		case err != nil:
		case b.Magic() != 2:
			err = errMagic
		case b.BaseOffset() < next || b.LastOffset() > it.Last || b.LastOffset() < b.BaseOffset():
			err = errOffsets
		case !b.ValidCRC():
			err = errBatchCRC
		}
		if err != nil {
			c.findings = append(c.findings, Finding{
				Damage: true, Kind: KindBatch, File: c.file.Name, Pos: pos, End: it.At.Pos + it.Size, FirstLSN: lsn, LastLSN: lsn,
				Partitions: []Range{{it.Part.String(), it.Base, it.Last}}, What: err.Error(),
				Remedy: "the frame is as it was written: whoever produced this sent it so; delete these records with `daybook topic trim`",
			})
			return
		}
		c.batches++
		next = b.LastOffset() + 1
		pos, rest = pos+int64(len(b)), after
	}
}

var (
	errMagic    = errors.New("a record batch is not of format version 2")
	errOffsets  = errors.New("a record batch's offsets are not those of its entry")
	errBatchCRC = errors.New("a record batch does not match its checksum")
)

// blank reports whether err is what lies behind the last frame of a sound file.
func blank(err error) bool {
	return errors.Is(err, format.ErrBlank) || errors.Is(err, format.ErrStale)
}
