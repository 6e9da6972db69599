package partition

import (
	"fmt"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
)

// Origin says who appends, which decides what is checked.
type Origin uint8

const (
	// FromClient batches come from a producer: sequences and transactions are checked.
	FromClient Origin = iota
	// FromCoordinator batches are the broker's own records (offsets, group and
	// transaction state, catalogue, markers): no producer checks.
	FromCoordinator
)

// Append is one batch bound for one partition. Submit owns Batch from then on.
type Append struct {
	To     *Partition
	Batch  model.Batch
	Origin Origin
	// TxnV2 says that the producer uses transactions v2 (KIP-890): a producer
	// without state must start at sequence 0.
	// For a marker it says that the epoch was raised with the end (KIP-1228).
	TxnV2 bool
	// Enlisted says that the coordinator holds the batch's transaction open and
	// counts this partition in it; without, a batch cannot begin a transaction here.
	Enlisted bool
}

// ErrNotEnlisted refuses a batch that would begin a transaction in a partition:
// only the coordinator can tell whether it may (txn.Coordinator.Enlist; KIP-890).
var ErrNotEnlisted = model.Err(model.ClassNotInTxn, "the partition is not part of an open transaction of this producer; abort and begin again")

// Result tells where a batch went.
type Result struct {
	Base          model.Offset
	LogAppendTime int64 // milliseconds, or -1 when the topic keeps the producer's time
	LogStart      model.Offset
	Duplicate     bool // the batch was there already; Base is where
}

// ItemError says which item of a group was refused.
type ItemError struct {
	Index int
	Err   error
}

func (e *ItemError) Error() string { return e.Err.Error() }

func (e *ItemError) Unwrap() error { return e.Err }

// plan is one item between decision and append.
type plan struct {
	base   model.Offset
	marker *markerInfo
	repeat *written
}

// Submit appends items as one append group: all or none. It returns an error when
// the group is refused (the *ItemError inside names the item); else done is called
// exactly once when the group is durable or has failed. done runs on the journal's
// goroutine (or before Submit returns, for a retry of what is durable already): it
// must be short and must not call Submit. Several items may name one partition,
// but only one of them may come from an idempotent producer.
func Submit(items []Append, done func([]Result, error)) error {
	return submit(items, false, done)
}

// SubmitEssential is Submit for what frees space or finishes work (settlements,
// markers, deletions): it is accepted even when the disk's hard limit is reached.
func SubmitEssential(items []Append, done func([]Result, error)) error {
	return submit(items, true, done)
}

func submit(items []Append, essential bool, done func([]Result, error)) error {
	parts := lockOrder(items)
	results := make([]Result, len(items))
	plans := make([]plan, len(items))
	for i := range items {
		results[i].LogAppendTime = stamp(&items[i])
		m, err := readMarkerInfo(items[i].Batch)
		if err != nil {
			return &ItemError{i, err}
		}
		plans[i].marker = m
	}
	for _, p := range parts {
		p.mu.Lock()
		p.planned = p.next
	}
	wait, err := decideLocked(items, plans, results)
	if err == nil && wait == nil {
		ends := make([]model.Offset, len(parts))
		err = appendLocked(items, plans, &storage.Group{Essential: essential, Done: func(_ model.LSN, err error) {
			durable(parts, ends, err)
			done(results, err)
		}})
		for i, p := range parts {
			ends[i] = p.next
		}
	}
	ready := false
	if err == nil && wait != nil {
		ready = wait.awaitLocked(func(err error) { done(results, err) })
	}
	for _, p := range parts {
		p.mu.Unlock()
	}
	if ready {
		done(results, nil)
	}
	return err
}

// lockOrder lists the partitions of a group once each, in locking order.
func lockOrder(items []Append) []*Partition {
	parts := make([]*Partition, len(items))
	for i, it := range items {
		parts[i] = it.To
	}
	if len(parts) == 1 {
		return parts
	}
	slices.SortFunc(parts, func(a, b *Partition) int { return a.id.Compare(b.id) })
	return slices.Compact(parts)
}

// stamp gives a client's batch the broker's time where the topic wants it.
func stamp(it *Append) int64 {
	if it.Origin != FromClient || !it.To.settings.Load().LogAppendTime {
		return -1
	}
	ms := it.To.now().UnixMilli()
	it.Batch.StampLogAppendTime(ms)
	return ms
}

// repeatWait is a group that only repeats what was appended before.
type repeatWait struct {
	p    *Partition
	last model.Offset
}

// awaitLocked reports whether the original is durable; if not, done runs when it is.
func (w *repeatWait) awaitLocked(done func(error)) (ready bool) {
	if w.last < w.p.hwm {
		return true
	}
	w.p.repeats = append(w.p.repeats, repeat{w.last, done})
	return false
}

// decideLocked checks every item and assigns offsets, without changing anything.
// A group whose items are all repeats gives what to wait for.
func decideLocked(items []Append, plans []plan, results []Result) (*repeatWait, error) {
	var wait *repeatWait
	fresh := false
	for i := range items {
		it, p := &items[i], items[i].To
		if p.deleted {
			return nil, &ItemError{i, errDeleted}
		}
		dup, err := p.checkLocked(it, plans[i].marker)
		if err != nil {
			return nil, &ItemError{i, err}
		}
		results[i].LogStart = p.log.Start()
		if dup != nil {
			plans[i].repeat = dup
			results[i].Base, results[i].Duplicate = dup.base, true
			if wait == nil || dup.last >= wait.last {
				wait = &repeatWait{p, dup.last}
			}
			continue
		}
		fresh = true
		plans[i].base, results[i].Base = p.planned, p.planned
		p.planned += model.Offset(it.Batch.LastOffsetDelta()) + 1
	}
	if fresh {
		wait = nil // the fresh items come after the repeated ones in the journal
	}
	return wait, nil
}

func (p *Partition) checkLocked(it *Append, m *markerInfo) (*written, error) {
	switch {
	case m != nil:
		return nil, p.state.producers.checkMarker(it.Batch, *m, it.TxnV2)
	case it.Origin == FromClient:
		return p.state.producers.check(it.Batch, it.TxnV2, it.Enlisted)
	case it.Batch.IsTransactional():
		return nil, p.state.producers.checkTxn(it.Batch, it.Enlisted)
	}
	return nil, nil
}

// appendLocked writes the offsets into the batches, puts the group in line and
// takes it into the state; from here on only a failing disk can stop it, and that
// stops the broker.
func appendLocked(items []Append, plans []plan, g *storage.Group) error {
	g.Entries = make([]storage.Entry, 0, len(items))
	for i := range items {
		if plans[i].repeat != nil {
			continue
		}
		it, b := &items[i], items[i].Batch
		b.SetBaseOffset(plans[i].base)
		b.SetLeaderEpoch(it.To.epoch)
		g.Entries = append(g.Entries, storage.Entry{
			Kind: storage.EntryBatches, Part: it.To.id,
			Base: plans[i].base, Last: b.LastOffset(), MaxTimestamp: b.MaxTimestamp(), Data: b,
		})
	}
	if err := items[0].To.store.Append(g); err != nil {
		return err
	}
	for i := range items {
		if plans[i].repeat != nil {
			continue
		}
		p, b := items[i].To, items[i].Batch
		p.state.apply(b, plans[i].base, plans[i].marker)
		p.next = b.LastOffset() + 1
	}
	return nil
}

// durable moves the high watermarks to ends when a group is on disk, and wakes
// who waits. Done needs the lock that Submit holds, so ends is complete here.
func durable(parts []*Partition, ends []model.Offset, err error) {
	for i, p := range parts {
		p.mu.Lock()
		if err == nil {
			p.hwm = max(p.hwm, ends[i])
			p.state.txns.durable(p.hwm)
			p.wakeLocked()
		}
		finished := p.takeRepeatsLocked(err != nil)
		p.mu.Unlock()
		for _, r := range finished {
			r.done(err)
		}
	}
}

// takeRepeatsLocked takes out the retries whose originals are durable, or all.
func (p *Partition) takeRepeatsLocked(all bool) (taken []repeat) {
	if len(p.repeats) == 0 {
		return nil
	}
	p.repeats = slices.DeleteFunc(p.repeats, func(r repeat) bool {
		if !all && r.last >= p.hwm {
			return false
		}
		taken = append(taken, r)
		return true
	})
	return taken
}

// String is for logs.
func (p *Partition) String() string { return fmt.Sprintf("partition %v", p.id) }
