// Package partition is one partition of one topic: it assigns offsets, checks
// producers and transactions, keeps the watermarks and wakes who waits for them.
// It is the reference component: a short lock, decide, append, apply when
// durable, reply. It does not know topics' names, requests or files.
package partition

import (
	"context"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// Partition is one partition. All methods may be called from any goroutine.
type Partition struct{}

// Origin says who appends, which decides what is checked.
type Origin uint8

const (
	// FromClient batches come from a producer: sequences and transactions are checked.
	FromClient Origin = iota
	// FromCoordinator batches are the broker's own records (offsets, group and
	// transaction state, catalogue): no producer checks, control batches allowed.
	FromCoordinator
)

// Append is one batch bound for one partition. Submit owns Batch from then on.
type Append struct {
	To     *Partition
	Batch  model.Batch
	Origin Origin
	// TxnV2 says that the producer uses transactions v2 (KIP-890): a producer
	// without state must start at sequence 0.
	TxnV2 bool
}

// Result tells where a batch went.
type Result struct {
	Base          model.Offset
	LogAppendTime int64 // milliseconds, or -1 when the topic keeps the producer's time
	LogStart      model.Offset
	Duplicate     bool // the batch was there already; Base is where
}

// Submit appends items as one append group: all or none. It returns an error when
// the group is refused (the *ItemError inside names the item); else done is called
// exactly once when the group is durable or has failed. done runs on the journal's
// goroutine: it must be short and must not call Submit. Two items may name one partition.
func Submit(items []Append, done func([]Result, error)) error { panic("stub") }

// ItemError says which item of a group was refused.
type ItemError struct {
	Index int
	Err   error
}

func (e *ItemError) Error() string { return e.Err.Error() }
func (e *ItemError) Unwrap() error { return e.Err }

// Isolation is the isolation level of a read (Kafka's numbers).
type Isolation int8

// ReadUncommitted ends at the high watermark, ReadCommitted at the last stable offset.
const (
	ReadUncommitted Isolation = 0
	ReadCommitted   Isolation = 1
)

// AbortedTxn is one entry of a fetch answer's aborted list.
type AbortedTxn struct {
	ProducerID int64
	First      model.Offset // first offset of the aborted transaction
}

// ReadResult is a fetch of one partition.
type ReadResult struct {
	partlog.Chunk
	HighWatermark, LastStable, LogStart model.Offset
	Aborted                             []AbortedTxn // read committed only
}

// ID names the partition.
func (p *Partition) ID() model.PartitionID { panic("stub") }

// Read returns whole batches from offset on, up to the isolation's end. At the
// end it returns an empty chunk; outside [LogStart, HighWatermark], ClassOutOfRange.
func (p *Partition) Read(ctx context.Context, from model.Offset, maxBytes int, atLeastOne bool, iso Isolation) (ReadResult, error) {
	panic("stub")
}

// Watermarks is a consistent look at the partition's positions.
type Watermarks struct {
	LogStart, HighWatermark, LastStable model.Offset
	LeaderEpoch                         int32
	Bytes                               int64
}

// Watermarks reads the positions.
func (p *Partition) Watermarks() Watermarks { panic("stub") }

// ReadableBytes estimates the bytes from offset from to the isolation's end (for
// long polls); it stops counting at limit.
func (p *Partition) ReadableBytes(from model.Offset, iso Isolation, limit int) int { panic("stub") }

// Waiter is told when partitions it watches have more to read.
type Waiter struct {
	// C gets a value (it has room for one) when something changed.
	C chan struct{}
}

// NewWaiter makes a waiter.
func NewWaiter() *Waiter { return &Waiter{C: make(chan struct{}, 1)} }

// Watch registers w until Unwatch. It is woken when the high watermark, the last
// stable offset or the log start moves, or the partition is deleted.
func (p *Partition) Watch(w *Waiter) { panic("stub") }

// Unwatch removes w.
func (p *Partition) Unwatch(w *Waiter) { panic("stub") }

// TimeOffset is an answer to a look-up by time.
type TimeOffset struct {
	Offset      model.Offset // -1: none
	Timestamp   int64        // milliseconds; -1: none
	LeaderEpoch int32
}

// OffsetForTime finds the first record, in offset order, at or after ms, below
// the isolation's end (ListOffsets with a timestamp; KIP-79).
func (p *Partition) OffsetForTime(ctx context.Context, ms int64, iso Isolation) (TimeOffset, error) {
	panic("stub")
}

// MaxTimestamp finds the record with the largest timestamp (KIP-734).
func (p *Partition) MaxTimestamp(ctx context.Context) (TimeOffset, error) { panic("stub") }

// EpochEnd answers OffsetForLeaderEpoch (KIP-320): the largest known epoch at or
// below the asked one and the offset where it ends; -1, -1 if the epoch is unknown.
func (p *Partition) EpochEnd(epoch int32) (int32, model.Offset) { panic("stub") }

// DeleteRecords moves the log start to before (-1: the high watermark), durably,
// and returns the new log start.
func (p *Partition) DeleteRecords(ctx context.Context, before model.Offset) (model.Offset, error) {
	panic("stub")
}
