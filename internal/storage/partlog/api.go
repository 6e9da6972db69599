package partlog

import (
	"context"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Options configure a store. Zero values mean the defaults.
type Options struct {
	FS  vfs.FS
	Dir string
	// (journal options, memory budget, journal cap, open-file cap, clock, logger, OnFatal)
}

// Store owns everything on disk: journal, segments, checkpoint.
type Store struct{}

// Log is one partition's log.
type Log struct{}

// Policy is what a topic's configuration asks of a log. Zero means unlimited
// for sizes and times.
type Policy struct {
	RetentionTime  time.Duration
	RetentionBytes int64
	Delete         bool // cleanup.policy contains delete
	Compact        bool // cleanup.policy contains compact
	SegmentBytes   int64
	SegmentTime    time.Duration
}

// Recovered is what a partition needs to rebuild its state: the newest snapshot
// and, after it, the batches since then in order: headers only
// (model.BatchHeaderSize bytes), but control batches whole.
type Recovered struct {
	Snapshot []byte
	UpTo     model.Offset // the snapshot covers offsets below this
	Since    []model.Batch
}

// Chunk is the answer to a read: whole batches, in offset order.
type Chunk struct {
	Data  [][]byte // each holds one or more whole batches; immutable
	Bytes int
	Next  model.Offset // the offset to read from next
}

// Snapshotter gives a partition's state as bytes, and the offset below which it
// covers everything. It is called without any lock of the store held.
type Snapshotter func() (state []byte, upTo model.Offset)

// Open locks the directory, loads checkpoint and indexes, replays the journal.
func Open(ctx context.Context, o Options) (*Store, error) { panic("stub") }

// Log gives the log of a partition, new and empty if there is none.
func (s *Store) Log(id model.PartitionID) *Log { panic("stub") }

// Append puts a group in line (storage.WAL.Append). When the group is durable the
// logs of its entries are extended first (so that reads see them), then Done runs.
func (s *Store) Append(g *storage.Group) error { panic("stub") }

// Barrier waits until everything appended before is durable.
func (s *Store) Barrier(ctx context.Context) error { panic("stub") }

// Retain keeps only the partitions for which keep says yes; the catalogue calls
// it once after start, so that what a crash left of deleted topics goes.
func (s *Store) Retain(keep func(model.PartitionID) bool) { panic("stub") }

// Incarnation counts the starts of this data directory, from 0.
func (s *Store) Incarnation() int32 { panic("stub") }

// Close stops the background work, writes a checkpoint and closes the files.
func (s *Store) Close() error { panic("stub") }

// Recovered hands out, once, what was found for this partition at start.
func (l *Log) Recovered() Recovered { panic("stub") }

// SetSnapshotter and SetPolicy may be called at any time.
func (l *Log) SetSnapshotter(f Snapshotter) { panic("stub") }

// SetPolicy replaces the retention policy.
func (l *Log) SetPolicy(p Policy) { panic("stub") }

// Start is the first offset that may be read; End is one past the last durable one.
func (l *Log) Start() model.Offset { panic("stub") }

// End is one past the last durable offset.
func (l *Log) End() model.Offset { panic("stub") }

// Size is the number of bytes of batches between Start and End.
func (l *Log) Size() int64 { panic("stub") }

// Read returns whole batches from the one that contains from on (or the next
// one after a gap), all below end, of at most maxBytes; the first batch comes
// whole even when it alone is larger, if atLeastOne. ClassOutOfRange outside
// [Start, End]; ClassCorrupt or ClassStorage where the disk's bytes are damaged.
func (l *Log) Read(ctx context.Context, from, end model.Offset, maxBytes int, atLeastOne bool) (Chunk, error) {
	panic("stub")
}

// SearchTime returns the first batch, in offset order, below end whose max
// timestamp is at least ms, starting at Start; nil if there is none.
func (l *Log) SearchTime(ctx context.Context, ms int64, end model.Offset) (model.Batch, error) {
	panic("stub")
}

// MaxTimestamp returns the batch below end that holds the largest timestamp (the
// first of them); nil if the log is empty.
func (l *Log) MaxTimestamp(ctx context.Context, end model.Offset) (model.Batch, error) { panic("stub") }

// TrimTo moves Start to o (not above End), durably; done is called as a group's Done is.
func (l *Log) TrimTo(o model.Offset, done func(error)) error { panic("stub") }

// Drop deletes the log for ever, durably; done is called as a group's Done is.
func (l *Log) Drop(done func(error)) error { panic("stub") }
