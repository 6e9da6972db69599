// Package statelog is what every durable state machine of core stands on: its
// changes are records in one partition; a change is decided, appended, and when
// durable applied and answered; replaying the records gives the state back.
package statelog

import (
	"context"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
)

// Record is one change: a key and the new value, nil to delete (a tombstone).
type Record struct {
	Key, Value []byte
}

// Log is one partition used as a machine's log.
type Log struct{}

// New uses p as a machine's log.
func New(p *partition.Partition) *Log { panic("stub") }

// Append writes records as one batch. applied runs, in append order, when they
// are durable (nil) or have failed; it must be short and must not call Append.
func (l *Log) Append(records []Record, applied func(error)) error { panic("stub") }

// Item gives the same batch as one item of a larger append group (partition.Submit).
func (l *Log) Item(records []Record) partition.Append { panic("stub") }

// Replay calls f for each record from the log's start, in order, with its offset
// and timestamp (milliseconds). Control batches are passed over.
func (l *Log) Replay(ctx context.Context, f func(r Record, at model.Offset, ms int64) error) error {
	panic("stub")
}
