package journal

import (
	"fmt"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
)

// Damage is a run of frames that were promised and cannot be read, or a file
// header (then no LSN is lost).
type Damage struct {
	// File, Path and the bytes [Pos, End) that are bad; File is 0 when frames are
	// missing and no file is there that could have held them.
	File     model.FileID
	Path     string
	Pos, End int64
	// FirstLSN to LastLSN are lost; 0 if none is.
	FirstLSN, LastLSN model.LSN
	// Items are the entries that were in them, without data, as far as the heads
	// of the frames could be read.
	Items []format.Item
	// Complete says that Items are all that is lost. If it is false, any
	// partition may have lost entries here; a gap in its offsets tells which.
	Complete bool
	Reason   error
}

// Partitions names those that lost entries, as far as is known, sorted.
func (d *Damage) Partitions() []model.PartitionID {
	var ids []model.PartitionID
	for i := range d.Items {
		ids = append(ids, d.Items[i].Part)
	}
	slices.SortFunc(ids, model.PartitionID.Compare)
	return slices.Compact(ids)
}

// String is for logs and tools.
func (d *Damage) String() string {
	where := "no file"
	if d.File != 0 {
		where = fmt.Sprintf("%s bytes %d to %d", d.Path, d.Pos, d.End)
	}
	if d.LastLSN == 0 {
		return fmt.Sprintf("%s: %v", where, d.Reason)
	}
	parts := "partitions unknown"
	if d.Complete {
		parts = fmt.Sprintf("partitions %v", d.Partitions())
	}
	return fmt.Sprintf("%s: LSN %d to %d unreadable, %s: %v", where, d.FirstLSN, d.LastLSN, parts, d.Reason)
}

// Damage lists what Open found damaged, in LSN order. The list does not change.
func (j *Journal) Damage() []Damage { return j.damage }
