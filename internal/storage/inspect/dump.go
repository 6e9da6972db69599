package inspect

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
)

// DumpOptions say what to dump. The zero value is all files, down to entries.
type DumpOptions struct {
	Files     []string  // base names, or ids in hexadecimal; empty is all
	Partition string    // topic id, dash, index; "" is all
	FromLSN   model.LSN // frames below are left out
	Frames    bool      // frames only, without entries
	Batches   bool      // down to batches
	Records   bool      // down to records
}

// Dump gives the rows of the data files in the order of their ids. It ends with
// the error that yield gives, if any.
func (d *Dir) Dump(ctx context.Context, o DumpOptions, yield func(Row) error) error {
	for _, want := range o.Files {
		if !slices.ContainsFunc(d.Files, func(f File) bool { return f.named(want) }) {
			return &model.Error{Class: model.ClassNotFound, Op: "dump", Object: want, Detail: "there is no such data file in " + d.path}
		}
	}
	for i := range d.Files {
		f := &d.Files[i]
		if len(o.Files) > 0 && !slices.ContainsFunc(o.Files, f.named) {
			continue
		}
		err := d.dumpFile(ctx, f, o, yield)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// named reports whether a person means this file by s.
func (f *File) named(s string) bool {
	base := strings.TrimSuffix(f.Name, format.ExtData)
	s = strings.TrimSuffix(path.Base(s), format.ExtData)
	return strings.TrimLeft(s, "0") == strings.TrimLeft(base, "0")
}

func (d *Dir) dumpFile(ctx context.Context, f *File, o DumpOptions, yield func(Row) error) error {
	r, err := d.fs.Open(path.Join(d.path, f.Name))
	if err != nil {
		return err
	}
	defer r.Close()
	row := FileRow{Type: "file", File: *f}
	if f.header != nil && f.Role != RolePrepared {
		row.Error = f.header.Error()
	}
	if err := yield(row); err != nil || f.Role == RolePrepared {
		return err
	}
	s := format.NewScanner(r, f.ID, f.Size, format.Whole)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		frame, err := s.Next()
		bad, isBad := errors.AsType[*format.BadFrame](err)
		switch {
		case err == io.EOF:
			return nil
		case isBad:
			tail := !s.Search()
			err = yield(BadRow{Type: "bad", File: f.Name, Pos: bad.Pos, Reason: bad.Err.Error(), Tail: tail})
			if err != nil || tail {
				return err
			}
		case err != nil:
			return err
		default:
			if err := dumpFrame(f, frame, o, yield); err != nil || frame.Flags&format.FlagLast != 0 {
				return err
			}
		}
	}
}

// dumpFrame gives a frame's rows; with a partition chosen, only of frames that have it.
func dumpFrame(f *File, frame *format.Frame, o DumpOptions, yield func(Row) error) error {
	has := func(it format.Item) bool { return o.Partition == "" || it.Part.String() == o.Partition }
	if frame.LSN < o.FromLSN || o.Partition != "" && !slices.ContainsFunc(frame.Items, has) {
		return nil
	}
	if err := yield(frameRow(f.Name, frame)); err != nil || o.Frames {
		return err
	}
	for i := range frame.Items {
		it := &frame.Items[i]
		if !has(*it) {
			continue
		}
		if err := yield(entryRow(f.Name, frame, it)); err != nil {
			return err
		}
		if it.Kind == storage.EntryBatches && (o.Batches || o.Records) {
			if err := dumpBatches(f, it, o.Records, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

func dumpBatches(f *File, it *format.Item, withRecords bool, yield func(Row) error) error {
	pos := it.At.Pos
	for rest := it.Data; len(rest) > 0; {
		b, next, err := model.NextBatch(rest)
		if err != nil {
			return yield(BadRow{Type: "bad", File: f.Name, Pos: pos, Reason: err.Error()})
		}
		if err := yield(batchRow(f.Name, it.Part.String(), pos, b)); err != nil {
			return err
		}
		if withRecords {
			if err := dumpRecords(f, it, pos, b, yield); err != nil {
				return err
			}
		}
		pos, rest = pos+int64(len(b)), next
	}
	return nil
}

func dumpRecords(f *File, it *format.Item, pos int64, b model.Batch, yield func(Row) error) error {
	r, err := records.Open(b, 0)
	for err == nil {
		var rec records.Record
		var ok bool
		if rec, ok, err = r.Next(); err != nil || !ok {
			break
		}
		row := RecordRow{
			Type: "record", Partition: it.Part.String(), Offset: b.BaseOffset() + model.Offset(rec.OffsetDelta),
			Timestamp: b.FirstTimestamp() + rec.TimestampDelta, Key: rec.Key, Value: rec.Value, Headers: rec.NumHeaders,
		}
		if b.IsLogAppendTime() {
			row.Timestamp = b.MaxTimestamp()
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	if err != nil {
		return yield(BadRow{Type: "bad", File: f.Name, Pos: pos, Reason: "records: " + err.Error()})
	}
	return nil
}
