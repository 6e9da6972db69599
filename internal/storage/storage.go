// Package storage names the nouns of the durable side: entries, append groups,
// positions, and the WAL seam between partition logs and what makes them durable.
// The journal package implements the seam with files on one node.
package storage

import (
	"context"
	"iter"

	"github.com/daybook-mq/daybook/internal/model"
)

// EntryKind says what an entry means when it is replayed.
type EntryKind uint8

const (
	// EntryBatches carries raw, contiguous record batches of one partition.
	EntryBatches EntryKind = 1
	// EntryTrim moves a partition's log start to Base; it has no data.
	EntryTrim EntryKind = 2
	// EntryDrop says that the partition is gone for ever; it has no data.
	EntryDrop EntryKind = 3
)

// Entry is one partition's share of one append group.
type Entry struct {
	Kind EntryKind
	Part model.PartitionID
	// Base and Last are the first and last offset of the batches.
	Base, Last model.Offset
	// MaxTimestamp is the largest of the batches' max timestamps, in milliseconds.
	MaxTimestamp int64
	// Data is immutable from Append on: the WAL writes it, the memory tail
	// serves it, and the garbage collector is its reference count.
	Data []byte
	// At is where Data lies; the WAL sets it before Done is called.
	At Location
}

// Location is where an entry's data lies in a data file.
type Location struct {
	File model.FileID
	Pos  int64
}

// Group is an append group: its entries become durable and visible together, or
// not at all. Entries of one group lie in one journal frame.
type Group struct {
	Entries []Entry
	// Essential groups (settlements, deletions, trims, markers: what frees
	// space or finishes work) are accepted below the hard disk limit as well.
	Essential bool
	// Done is called exactly once, in append order over all groups, on the
	// committer's goroutine: with nil when the group is durable, else with the
	// reason. It must be short and must not call Append.
	Done func(model.LSN, error)
}

// WAL makes append groups durable, in order. One incarnation of one broker
// writes; Open of an implementation fences the incarnations before it.
type WAL interface {
	// Append puts g in line and returns at once. An error (closed, disk full,
	// too large) means that g was refused and Done will not be called.
	Append(g *Group) error
	// Durable is the LSN up to which all is durable.
	Durable() model.LSN
	// Barrier returns when all that was appended before is durable.
	Barrier(ctx context.Context) error
	// Read yields the entries of the durable frames from LSN from on, in order.
	Read(ctx context.Context, from model.LSN) iter.Seq2[Located, error]
	// Close makes what was appended durable and stops.
	Close() error
}

// Located is an entry read back, with the LSN of its frame.
type Located struct {
	LSN   model.LSN
	Entry Entry
}
