// Package statelog is what every durable state machine of core stands on: its
// changes are records in one partition; a change is decided, appended, and when
// durable applied and answered; replaying the records gives the state back.
package statelog

import (
	"context"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// replayBytes is how much of a log one read of a replay takes.
const replayBytes = 4 << 20

// Record is one change: a key and the new value, nil to delete (a tombstone).
type Record struct {
	Key, Value []byte
}

// Log is one partition used as a machine's log.
type Log struct {
	p   *partition.Partition
	now func() time.Time
}

// New uses p as a machine's log.
func New(p *partition.Partition, now func() time.Time) *Log { return &Log{p, now} }

// Partition is the partition underneath.
func (l *Log) Partition() *partition.Partition { return l.p }

// Append writes records as one batch. applied runs, in append order, when they
// are durable (nil) or have failed; it must be short and must not call Append.
// An error means that the records were refused and applied will not run.
func (l *Log) Append(rs []Record, applied func(error)) error {
	return partition.SubmitEssential([]partition.Append{l.Item(rs)}, func(_ []partition.Result, err error) { applied(err) })
}

// Item gives the same batch as one item of a larger append group (partition.Submit).
func (l *Log) Item(rs []Record) partition.Append {
	return l.item(rs, records.Plain(l.now()))
}

// TxnItem gives records as part of a producer's transaction: they count when the
// transaction's commit marker is written to this partition. It may be submitted
// only inside txn.Coordinator.Enlist, which holds the transaction open.
func (l *Log) TxnItem(rs []Record, producerID int64, epoch int16) partition.Append {
	m := records.Plain(l.now())
	m.Transactional, m.ProducerID, m.ProducerEpoch = true, producerID, epoch
	it := l.item(rs, m)
	it.Enlisted = true
	return it
}

func (l *Log) item(rs []Record, m records.Meta) partition.Append {
	b := records.NewBuilder(m)
	for _, r := range rs {
		b.Add(0, r.Key, r.Value, nil)
	}
	batch, err := b.Build(0)
	if err != nil {
		panic(err) // an uncompressed batch cannot fail to build
	}
	return partition.Append{To: l.p, Batch: batch, Origin: partition.FromCoordinator}
}

// Entry is a replayed record, or a transaction marker (Marker is not nil then).
type Entry struct {
	Record
	Offset        model.Offset
	Timestamp     int64 // milliseconds
	Transactional bool
	ProducerID    int64
	ProducerEpoch int16
	Marker        *records.Marker
}

// Replay calls f for every durable record and marker from the log's start, in order.
func (l *Log) Replay(ctx context.Context, f func(Entry) error) error {
	w := l.p.Watermarks()
	for from := w.LogStart; from < w.HighWatermark; {
		res, err := l.p.Read(ctx, from, replayBytes, true, partition.ReadUncommitted)
		if err != nil {
			return err
		}
		if res.Bytes == 0 {
			return nil
		}
		for _, data := range res.Data {
			if err := replay(data, f); err != nil {
				return err
			}
		}
		from = res.Next
	}
	return nil
}

func replay(data []byte, f func(Entry) error) error {
	for len(data) > 0 {
		b, rest, err := model.NextBatch(data)
		if err != nil {
			return &model.Error{Class: model.ClassCorrupt, Op: "replay", Cause: err}
		}
		data = rest
		if err := replayBatch(b, f); err != nil {
			return err
		}
	}
	return nil
}

func replayBatch(b model.Batch, f func(Entry) error) error {
	e := Entry{
		Transactional: b.IsTransactional(), ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(),
		Offset: b.BaseOffset(), Timestamp: b.MaxTimestamp(),
	}
	if b.IsControl() {
		m, ok, err := records.ReadMarker(b)
		if err != nil || !ok {
			return err
		}
		e.Marker = &m
		return f(e)
	}
	r, err := records.Open(b, 0)
	if err != nil {
		return err
	}
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		e.Key, e.Value = rec.Key, rec.Value
		e.Offset = b.BaseOffset() + model.Offset(rec.OffsetDelta)
		e.Timestamp = b.FirstTimestamp() + rec.TimestampDelta
		if err := f(e); err != nil {
			return err
		}
	}
}
