package partition

import (
	"context"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

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

// Read returns whole batches from offset on, up to the isolation's end. At the
// end it returns an empty chunk; outside [LogStart, HighWatermark], ClassOutOfRange.
func (p *Partition) Read(ctx context.Context, from model.Offset, maxBytes int, atLeastOne bool, iso Isolation) (ReadResult, error) {
	w, err := p.readable()
	if err != nil {
		return ReadResult{}, err
	}
	res := ReadResult{HighWatermark: w.HighWatermark, LastStable: w.LastStable, LogStart: w.LogStart}
	res.Next = from
	if from < w.LogStart || from > w.HighWatermark {
		return res, outOfRange(from, w)
	}
	end := w.end(iso)
	if from >= end {
		return res, nil
	}
	if res.Chunk, err = p.log.Read(ctx, from, end, maxBytes, atLeastOne); err != nil {
		return res, err
	}
	if iso == ReadCommitted && res.Bytes > 0 {
		p.mu.Lock()
		res.Aborted = p.state.txns.abortedIn(from, res.Next)
		p.mu.Unlock()
	}
	return res, nil
}

func (w Watermarks) end(iso Isolation) model.Offset {
	if iso == ReadCommitted {
		return w.LastStable
	}
	return w.HighWatermark
}

func (p *Partition) readable() (Watermarks, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleted {
		return Watermarks{}, errDeleted
	}
	return p.watermarksLocked(), nil
}

// Waiter is told when partitions it watches have more to read.
type Waiter struct {
	// C gets a value (it has room for one) when something changed.
	C chan struct{}
}

// NewWaiter makes a waiter.
func NewWaiter() *Waiter { return &Waiter{C: make(chan struct{}, 1)} }

// Watch registers w until Unwatch. It is woken when the high watermark, the last
// stable offset or the log start moves, or the partition is deleted.
func (p *Partition) Watch(w *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters == nil {
		p.waiters = map[*Waiter]struct{}{}
	}
	p.waiters[w] = struct{}{}
}

// Unwatch removes w.
func (p *Partition) Unwatch(w *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiters, w)
}

func (p *Partition) wakeLocked() {
	for w := range p.waiters {
		select {
		case w.C <- struct{}{}:
		default:
		}
	}
}

// TimeOffset is an answer to a look-up by time.
type TimeOffset struct {
	Offset      model.Offset // -1: none
	Timestamp   int64        // milliseconds; -1: none
	LeaderEpoch int32
}

var noTimeOffset = TimeOffset{Offset: -1, Timestamp: -1, LeaderEpoch: -1}

// OffsetForTime finds the first record, in offset order, at or after ms, below
// the isolation's end (ListOffsets with a timestamp; KIP-79).
func (p *Partition) OffsetForTime(ctx context.Context, ms int64, iso Isolation) (TimeOffset, error) {
	w, err := p.readable()
	if err != nil {
		return noTimeOffset, err
	}
	b, err := p.log.SearchTime(ctx, ms, w.end(iso))
	if err != nil || b == nil {
		return noTimeOffset, err
	}
	return searchBatch(b, func(ts, _ int64) bool { return ts >= ms })
}

// MaxTimestamp finds the first record with the largest timestamp (KIP-734).
func (p *Partition) MaxTimestamp(ctx context.Context) (TimeOffset, error) {
	w, err := p.readable()
	if err != nil {
		return noTimeOffset, err
	}
	b, err := p.log.MaxTimestamp(ctx, w.HighWatermark)
	if err != nil || b == nil {
		return noTimeOffset, err
	}
	return searchBatch(b, func(ts, largest int64) bool { return ts == largest })
}

// searchBatch finds the first record of b whose timestamp satisfies match, which
// is given the batch's largest timestamp beside it.
func searchBatch(b model.Batch, match func(ts, largest int64) bool) (TimeOffset, error) {
	largest := b.MaxTimestamp()
	if b.IsLogAppendTime() {
		return TimeOffset{b.BaseOffset(), largest, b.LeaderEpoch()}, nil
	}
	r, err := records.Open(b, 0)
	if err != nil {
		return noTimeOffset, err
	}
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return noTimeOffset, err
		}
		if ts := b.FirstTimestamp() + rec.TimestampDelta; match(ts, largest) {
			return TimeOffset{b.BaseOffset() + model.Offset(rec.OffsetDelta), ts, b.LeaderEpoch()}, nil
		}
	}
}
