package ledger

import (
	"math"

	"github.com/tidwall/btree"

	"github.com/daybook-mq/daybook/internal/model"
)

// run is neighbouring offsets in one state.
type run struct {
	last  model.Offset
	until int64 // Acquired, Delayed: milliseconds
	owner Member
	count uint16 // deliveries so far, at most maxCount
	state State
}

// joins reports whether neighbours can be one run.
func joins(a, b run) bool {
	return a.state == b.state && a.count == b.count && a.owner == b.owner && a.until == b.until
}

// cell is a run as the tree holds it: 16 bytes, since a queue may have millions.
type cell struct {
	bits   uint64 // until (46 bits), count (15 bits), state (3 bits)
	length uint32 // of the run, less one
	owner  Member
}

const (
	stateBits = 3
	countBits = 15
	maxCount  = 1<<countBits - 1
	maxUntil  = 1<<(64-stateBits-countBits) - 1 // the year 4199, in milliseconds
	maxLength = math.MaxUint32
)

func pack(first model.Offset, r run) cell {
	until := uint64(min(max(r.until, 0), maxUntil))
	return cell{
		bits:   until<<(stateBits+countBits) | uint64(min(r.count, maxCount))<<stateBits | uint64(r.state),
		length: uint32(r.last - first), owner: r.owner,
	}
}

func (c cell) run(first model.Offset) run {
	return run{
		last: first + model.Offset(c.length), until: int64(c.bits >> (stateBits + countBits)), owner: c.owner,
		count: uint16(c.bits >> stateBits & maxCount), state: State(c.bits & (1<<stateBits - 1)),
	}
}

// runs are what is not settled between a ledger's start and end, by first offset;
// what no run covers there is settled.
type runs struct {
	tree  btree.Map[model.Offset, cell]
	ready btree.Map[model.Offset, struct{}] // first offsets of the Ready runs
	held  btree.Map[model.Offset, struct{}] // first offsets of the Acquired runs
}

func (rs *runs) len() int { return rs.tree.Len() }

// find gives the run that contains o and its first offset.
func (rs *runs) find(o model.Offset) (first model.Offset, r run, ok bool) {
	rs.tree.Descend(o, func(f model.Offset, c cell) bool {
		first, r = f, c.run(f)
		ok = r.last >= o
		return false
	})
	return first, r, ok
}

// from gives the first run that begins at or after o.
func (rs *runs) from(o model.Offset) (first model.Offset, r run, ok bool) {
	rs.tree.Ascend(o, func(f model.Offset, c cell) bool {
		first, r, ok = f, c.run(f), true
		return false
	})
	return first, r, ok
}

// scan calls f for each run, in order, until f says no.
func (rs *runs) scan(f func(first model.Offset, r run) bool) { scan(&rs.tree, f) }

func scan(tree *btree.Map[model.Offset, cell], f func(first model.Offset, r run) bool) {
	tree.Scan(func(first model.Offset, c cell) bool { return f(first, c.run(first)) })
}

// scanHeld calls f for each run that a member holds, in order.
func (rs *runs) scanHeld(f func(first model.Offset, r run) bool) {
	rs.held.Scan(func(first model.Offset, _ struct{}) bool {
		c, _ := rs.tree.Get(first)
		return f(first, c.run(first))
	})
}

// set puts a run in, in place of one with the same first offset.
func (rs *runs) set(first model.Offset, r run) {
	rs.unset(first)
	for r.last-first > maxLength {
		head := r
		head.last = first + maxLength
		rs.put(first, head)
		first = head.last + 1
	}
	rs.put(first, r)
}

func (rs *runs) put(first model.Offset, r run) {
	rs.tree.Set(first, pack(first, r))
	switch r.state {
	case Ready:
		rs.ready.Set(first, struct{}{})
	case Acquired:
		rs.held.Set(first, struct{}{})
	}
}

func (rs *runs) unset(first model.Offset) {
	old, there := rs.tree.Delete(first)
	if !there {
		return
	}
	switch old.run(first).state {
	case Ready:
		rs.ready.Delete(first)
	case Acquired:
		rs.held.Delete(first)
	}
}

// insert adds a run in a hole and joins it with equal neighbours.
func (rs *runs) insert(first model.Offset, r run) {
	if f, prev, ok := rs.find(first - 1); ok && joins(prev, r) && r.last-f <= maxLength {
		rs.unset(f)
		first = f
	}
	if f, next, ok := rs.from(r.last + 1); ok && f == r.last+1 && joins(r, next) && next.last-first <= maxLength {
		rs.unset(f)
		r.last = next.last
	}
	rs.set(first, r)
}

// cut splits the run that contains o, so that one begins there; ok if it did.
func (rs *runs) cut(o model.Offset) (r run, ok bool) {
	first, r, ok := rs.find(o)
	if !ok || first == o {
		return r, false
	}
	head := r
	head.last = o - 1
	rs.set(first, head)
	rs.set(o, r)
	return r, true
}
