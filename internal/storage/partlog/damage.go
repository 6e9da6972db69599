package partlog

import (
	"errors"
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

// damage is a range of offsets that cannot be read, and why.
type damage struct {
	base, last model.Offset
	reason     string
}

const reasonMissing = "no file holds these offsets"

// Damaged is the cause of an error of reading: the offsets that are lost, and
// what to say of the place.
type Damaged struct {
	Log         model.PartitionID // where the reader knew it
	First, Last model.Offset
	Where       string
	Cause       error
}

func (d *Damaged) Error() string {
	if d.Cause == nil {
		return d.Where
	}
	return d.Where + ": " + d.Cause.Error()
}

func (d *Damaged) Unwrap() error { return d.Cause }

// newDamaged makes the error of a read. It is ClassStorage when the disk would
// not give the bytes, else ClassCorrupt.
func newDamaged(object string, d *Damaged) error {
	class := model.ClassCorrupt
	if d.Cause != nil {
		class = model.ClassOf(d.Cause)
	}
	return &model.Error{
		Class: class, Op: "read", Object: object, Cause: d,
		Detail: fmt.Sprintf("offsets %d to %d are damaged on disk (%s); read from %d on, or see `daybook log repair`",
			d.First, d.Last, d.Where, d.Last+1),
	}
}

var errChecksum = model.Err(model.ClassCorrupt, "the bytes do not match their checksum")

func damagedBlock(f *datafile.File, b index.Block, cause error) error {
	return newDamaged(f.Path(), &Damaged{
		First: b.Base, Last: b.Last, Cause: cause,
		Where: fmt.Sprintf("file %s, position %d, %d bytes", fileName(f.ID), b.Pos, b.Len),
	})
}

func (l *Log) quarantined(d damage) error {
	return newDamaged(l.id.String(), &Damaged{First: d.base, Last: d.last, Where: d.reason})
}

// damaged says loudly, and counts, that reading at o met damage.
func (l *Log) damaged(err error, o model.Offset) error {
	if err == nil {
		return nil
	}
	l.store.stats.readErrors.Add(1)
	l.store.log.Error("reading stored batches met damage", "partition", l.id.String(), "offset", int64(o), "err", err)
	return err
}

// nextReadable gives the first offset after the damage that err tells of.
func nextReadable(err error) (model.Offset, bool) {
	d, ok := errors.AsType[*Damaged](err)
	if !ok {
		return 0, false
	}
	return d.Last + 1, true
}
