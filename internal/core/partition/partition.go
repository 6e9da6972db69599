// Package partition is one partition of one topic: it assigns offsets, checks
// producers and transactions, keeps the watermarks and wakes who waits for them.
// It is the reference component: a short lock, decide, append, apply when
// durable, reply. It does not know topics' names, requests or files.
//
// submit.go appends, read.go reads; producers.go, txns.go and snapshot.go are the
// pure machine behind both.
package partition

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// Settings are what a topic's configuration asks of its partitions.
type Settings struct {
	LogAppendTime  bool
	ProducerExpiry time.Duration // producer.id.expiration.ms; 0 for a day
	Log            partlog.Policy
}

// Partition is one partition. All methods may be called from any goroutine.
//
// Invariants, under mu:
//   - hwm <= next; hwm is the end of the durable part and only grows;
//   - offsets are handed out in the order in which groups enter the journal,
//     since both happen under mu;
//   - state covers all that was appended, durable or not; what readers see is cut
//     at hwm and at the last stable offset.
type Partition struct {
	// immutable
	id    model.PartitionID
	store *partlog.Store
	log   *partlog.Log
	epoch int32
	now   func() time.Time

	settings atomic.Pointer[Settings]

	mu      sync.Mutex
	next    model.Offset
	hwm     model.Offset
	state   state
	waiters map[*Waiter]struct{}
	planned model.Offset // next, inside the group that is being decided
	repeats []repeat     // retries of batches that are not durable yet
	deleted bool
}

// repeat is a duplicate whose original is not durable yet.
type repeat struct {
	last model.Offset
	done func(error)
}

// Open makes the partition over its log and replays what recovery found.
func Open(store *partlog.Store, id model.PartitionID, s Settings, now func() time.Time) (*Partition, error) {
	p := &Partition{id: id, store: store, log: store.Log(id), epoch: store.Incarnation(), now: now}
	rec := p.log.Recovered()
	p.state = newState()
	if rec.Snapshot != nil {
		st, err := decodeState(rec.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("open %v: %w", id, err)
		}
		p.state = st
	}
	for _, b := range rec.Since {
		if b.BaseOffset() < rec.UpTo {
			continue
		}
		if err := p.state.replay(b); err != nil {
			return nil, fmt.Errorf("open %v: %w", id, err)
		}
	}
	p.next = p.log.End()
	p.hwm = p.next
	p.state.txns.durable(p.hwm)
	p.state.txns.forget(p.log.Start())
	p.state.enterEpoch(p.epoch, p.next)
	p.SetSettings(s)
	p.log.SetSnapshotter(p.snapshot)
	p.log.SetOnStart(p.startMoved)
	p.log.SetCompaction(p.compactionView)
	return p, nil
}

// SetSettings replaces the settings.
func (p *Partition) SetSettings(s Settings) {
	if s.ProducerExpiry == 0 {
		s.ProducerExpiry = 24 * time.Hour
	}
	p.settings.Store(&s)
	p.log.SetPolicy(s.Log)
}

// ID names the partition.
func (p *Partition) ID() model.PartitionID { return p.id }

// LeaderEpoch is the epoch under which this process leads the partition.
func (p *Partition) LeaderEpoch() int32 { return p.epoch }

// startMoved is told by the log that records were deleted, by retention or by
// DeleteRecords.
func (p *Partition) startMoved(start model.Offset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.txns.forget(start)
	p.wakeLocked()
}

// compactionView is what compaction must respect: it stays below what a
// transaction may still decide, and keeps the batch by which a producer is known.
func (p *Partition) compactionView() partlog.CompactionView {
	p.mu.Lock()
	defer p.mu.Unlock()
	return partlog.CompactionView{Stable: p.state.txns.lastStable(p.hwm), Keeps: func(producer int64, last model.Offset) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		pr := p.state.producers[producer]
		return pr != nil && len(pr.batches) > 0 && pr.batches[len(pr.batches)-1].last == last
	}}
}

// snapshot is the log's Snapshotter; the store makes it durable only after all
// that it covers is.
func (p *Partition) snapshot() ([]byte, model.Offset) {
	expiry := p.settings.Load().ProducerExpiry
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.producers.expire(p.now().Add(-expiry).UnixMilli())
	p.state.txns.forget(p.log.Start())
	return p.state.encode(), p.next
}

// Watermarks is a consistent look at the partition's positions.
type Watermarks struct {
	LogStart, HighWatermark, LastStable model.Offset
	LeaderEpoch                         int32
	Bytes                               int64
}

// Watermarks reads the positions.
func (p *Partition) Watermarks() Watermarks {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watermarksLocked()
}

func (p *Partition) watermarksLocked() Watermarks {
	start := p.log.Start()
	return Watermarks{
		LogStart: start, HighWatermark: p.hwm, LastStable: max(start, p.state.txns.lastStable(p.hwm)),
		LeaderEpoch: p.epoch, Bytes: p.log.Size(),
	}
}

// EpochEnd answers OffsetForLeaderEpoch (KIP-320): the largest known epoch at or
// below the asked one and the offset where it ends; -1, -1 if the epoch is unknown.
func (p *Partition) EpochEnd(epoch int32) (int32, model.Offset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.endOf(epoch, p.hwm)
}

// DeleteRecords moves the log start to before (-1: the high watermark), durably,
// and returns the new log start.
func (p *Partition) DeleteRecords(ctx context.Context, before model.Offset) (model.Offset, error) {
	w := p.Watermarks()
	if before == -1 {
		before = w.HighWatermark
	}
	if before < 0 || before > w.HighWatermark {
		return 0, outOfRange(before, w)
	}
	if before <= w.LogStart {
		return w.LogStart, nil
	}
	if err := await(ctx, func(done func(error)) error { return p.log.TrimTo(before, done) }); err != nil {
		return 0, err
	}
	return p.log.Start(), nil
}

// Delete drops the partition's data for ever. Reads and appends fail from now on;
// done runs as Submit's does.
func (p *Partition) Delete(done func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleted {
		return errDeleted
	}
	if err := p.log.Drop(done); err != nil {
		return err
	}
	p.deleted = true
	p.wakeLocked()
	return nil
}

// await turns a call with a completion into a blocking one.
func await(ctx context.Context, start func(done func(error)) error) error {
	ch := make(chan error, 1)
	if err := start(func(err error) { ch <- err }); err != nil {
		return err
	}
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errDeleted = model.Err(model.ClassNotFound, "the topic was deleted; refresh the metadata")

func outOfRange(o model.Offset, w Watermarks) error {
	return model.Err(model.ClassOutOfRange, fmt.Sprintf("offset %d is outside the log, which holds %d to %d", o, w.LogStart, w.HighWatermark))
}
