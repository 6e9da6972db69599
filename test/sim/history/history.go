// Package history records what clients asked of a broker and what they were told,
// and checks afterwards whether a log with idempotent producers, transactions and
// consumer groups can have told them that. It starts no broker and knows no
// client: Check is a pure function, in the manner of Jepsen's Kafka workload.
package history

import (
	"fmt"
	"sync"
)

// Time is a place in the order in which things happened; 0 means never.
type Time int64

// Part is one partition.
type Part struct {
	Topic string
	Index int32
}

// String is topic-index.
func (p Part) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Index) }

// Record is one record as a consumer saw it. Values are unique in a history.
type Record struct {
	Offset int64
	Value  int64
}

// Outcome is what a client knows of something it asked for.
type Outcome int8

const (
	// Unknown: it may or may not have happened, now or later.
	Unknown Outcome = iota
	// OK: it has happened.
	OK
	// Failed: it has not happened and never will.
	Failed
)

// Write is one record that an idempotent producer was asked to append, once.
type Write struct {
	Producer           string // one life of one producer: its writes keep their order
	Txn                *Txn   // nil outside of transactions
	Part               Part
	Value              int64
	Source             *Source // what it was made from, if it was made from a record
	Invoked, Completed Time
	Outcome            Outcome
	Offset             int64 // of an acknowledged write
}

// Source is a record that a processor consumed on behalf of a group.
type Source struct {
	Group  string
	Part   Part
	Offset int64
}

// Txn is one transaction. It is aborted unless Commit was asked for.
type Txn struct {
	Name            string
	Commit          bool // what was asked for at Ended
	Ended, Returned Time
	Outcome         Outcome // of the end: OK means that it ended as asked
}

// mayBeCommitted and mustBeCommitted bound what a transaction's outcome can be.
func (t *Txn) mayBeCommitted() bool  { return t.Commit && t.Ended != 0 && t.Outcome != Failed }
func (t *Txn) mustBeCommitted() bool { return t.mayBeCommitted() && t.Outcome == OK }

// Read is what one consumer got of one partition in one go: everything that it may
// see from position From on, up to Next.
type Read struct {
	Consumer           string // one position: its reads follow each other
	Part               Part
	Committed          bool // read_committed
	Invoked, Completed Time
	From, Next         int64
	Records            []Record
}

// OffsetCommit is a group's position that was stored, alone or in a transaction.
type OffsetCommit struct {
	Group              string
	Part               Part
	Offset             int64
	Txn                *Txn
	Invoked, Completed Time
	Outcome            Outcome
}

// OffsetRead is a group's position as somebody fetched it; -1 for none.
type OffsetRead struct {
	Group              string
	Part               Part
	Offset             int64
	Invoked, Completed Time
}

// Final is what is left in the end, when every transaction is decided.
type Final struct {
	Log     map[Part][]Record         // all that read_committed sees, in order
	Offsets map[string]map[Part]int64 // by group
	Open    []string                  // transactions that are still open
}

// History is what happened. Its methods may be called from any goroutine; the
// fields may be read when nobody adds to them any more.
type History struct {
	Writes  []*Write
	Txns    []*Txn
	Reads   []Read
	Commits []*OffsetCommit
	Offsets []OffsetRead
	Final   Final

	mu  sync.Mutex
	now Time
}

// Now takes the next place in the order.
func (h *History) Now() Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	return h.now
}

// AddTxn notes the beginning of a transaction; its end is filled in with EndTxn.
func (h *History) AddTxn(name string) *Txn {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &Txn{Name: name}
	h.Txns = append(h.Txns, t)
	return t
}

// EndTxn notes that a transaction's end is asked for.
func (h *History) EndTxn(t *Txn, commit bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	t.Commit, t.Ended = commit, h.now
}

// TxnEnded notes the answer to an end.
func (h *History) TxnEnded(t *Txn, o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	t.Returned, t.Outcome = h.now, o
}

// Invoke notes a write before it is sent.
func (h *History) Invoke(w *Write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	w.Invoked = h.now
	h.Writes = append(h.Writes, w)
}

// Complete notes the answer to a write.
func (h *History) Complete(w *Write, o Outcome, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	w.Completed, w.Outcome, w.Offset = h.now, o, offset
}

// AddRead notes a read that was begun at invoked and is complete now.
func (h *History) AddRead(r Read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	r.Completed = h.now
	h.Reads = append(h.Reads, r)
}

// InvokeCommit notes an offset commit before it is sent.
func (h *History) InvokeCommit(c *OffsetCommit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	c.Invoked = h.now
	h.Commits = append(h.Commits, c)
}

// CompleteCommit notes the answer to an offset commit.
func (h *History) CompleteCommit(c *OffsetCommit, o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	c.Completed, c.Outcome = h.now, o
}

// AddOffsetRead notes an offset fetch that is complete now.
func (h *History) AddOffsetRead(r OffsetRead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	r.Completed = h.now
	h.Offsets = append(h.Offsets, r)
}
