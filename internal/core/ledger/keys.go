package ledger

import (
	"cmp"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

// keyOrder knows, per key hash, which offset holds the key and who waits.
type keyOrder struct {
	locks  map[uint64]*keyLock
	byHold map[model.Offset]uint64 // key of each offset that holds or waits
}

// keyLock is one key: the offset that may be in flight, and the line behind it in
// offset order. A parked key has a line and no holder.
type keyLock struct {
	holder model.Offset
	parked bool
	line   []model.Offset
}

func newKeyOrder() keyOrder {
	return keyOrder{map[uint64]*keyLock{}, map[model.Offset]uint64{}}
}

// within lists the offsets of s that hold or wait for a key, ascending.
func (k *keyOrder) within(s Span) (out []model.Offset) {
	if int64(len(k.byHold)) < s.Len() {
		for o := range k.byHold {
			if o >= s.First && o <= s.Last {
				out = append(out, o)
			}
		}
		slices.Sort(out)
		return out
	}
	for o := s.First; o <= s.Last; o++ {
		if _, ok := k.byHold[o]; ok {
			out = append(out, o)
		}
	}
	return out
}

// hold takes the key for o, or puts o in line and makes it Waiting.
func (l *Ledger) hold(key uint64, o model.Offset, count uint16) bool {
	lock := l.keys.locks[key]
	if lock == nil {
		l.keys.locks[key] = &keyLock{holder: o}
		l.keys.byHold[o] = key
		return true
	}
	if lock.holder == o && !lock.parked {
		return true
	}
	l.enqueue(lock, key, o, count)
	return false
}

func (l *Ledger) enqueue(lock *keyLock, key uint64, o model.Offset, count uint16) {
	if i, there := slices.BinarySearch(lock.line, o); !there {
		lock.line = slices.Insert(lock.line, i, o)
	}
	l.keys.byHold[o] = key
	l.put(Span{o, o}, run{state: Waiting, count: count})
}

// unhold lets go of the keys of settled offsets; the next in line becomes ready.
func (l *Ledger) unhold(s Span, died bool) {
	for _, o := range l.keys.within(s) {
		key := l.keys.byHold[o]
		delete(l.keys.byHold, o)
		lock := l.keys.locks[key]
		if lock.holder != o || lock.parked {
			lock.line = slices.DeleteFunc(lock.line, func(w model.Offset) bool { return w == o })
			continue
		}
		if died && l.cfg.ParkDeadKeys {
			lock.parked = true
			continue
		}
		l.next(key, lock)
	}
}

// next passes the key to the first in line, or drops it.
func (l *Ledger) next(key uint64, lock *keyLock) {
	if len(lock.line) == 0 {
		delete(l.keys.locks, key)
		return
	}
	o := lock.line[0]
	lock.line = lock.line[1:]
	lock.holder, lock.parked = o, false
	if _, r, ok := l.find(o); ok && r.state == Waiting {
		l.put(Span{o, o}, run{state: Ready, count: r.count})
	}
}

// pass lets the line behind a delayed holder go on (DelayLetsPass).
func (l *Ledger) pass(s Span) {
	for _, o := range l.keys.within(s) {
		key := l.keys.byHold[o]
		if lock := l.keys.locks[key]; lock.holder == o {
			lock.holder = -1
			l.next(key, lock)
		}
	}
}

// requeue brings offsets whose delay is over back behind whoever holds their key.
func (l *Ledger) requeue(s Span, count uint16) {
	for _, o := range l.keys.within(s) {
		l.hold(l.keys.byHold[o], o, count)
	}
}

// Known gives the ready records of s below the end whose keys are known already, as
// candidates, and the offset from which on records must be read to know theirs.
func (l *Ledger) Known(s Span) (known []Candidate, from model.Offset) {
	last := min(s.Last, l.end-1)
	for o := l.NextReady(max(s.First, l.start)); o <= last; o = l.NextReady(o + 1) {
		key, ok := l.keys.byHold[o]
		if !ok {
			return known, o
		}
		known = append(known, Candidate{Span: Span{o, o}, Key: key, Keyed: true})
	}
	return known, max(s.First, l.end)
}

// KeyHolder says which offset holds the key and how many wait behind it.
func (l *Ledger) KeyHolder(key uint64) (holder model.Offset, waiting int, parked, ok bool) {
	lock := l.keys.locks[key]
	if lock == nil {
		return 0, 0, false, false
	}
	return lock.holder, len(lock.line), lock.parked, true
}

// ParkedKeys lists the keys that a dead record closed.
func (l *Ledger) ParkedKeys() []uint64 {
	var keys []uint64
	for k, lock := range l.keys.locks {
		if lock.parked {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// Unpark opens a parked key again.
func (l *Ledger) Unpark(key uint64) bool {
	lock := l.keys.locks[key]
	if lock == nil || !lock.parked {
		return false
	}
	l.next(key, lock)
	return true
}

// NeedKeys lists, after a restart, the offsets whose records' keys must be given
// to Rekey, in order, before anything is acquired (KeyOrder only): the delayed
// ones, which hold their keys.
func (l *Ledger) NeedKeys() []Span {
	var out []Span
	if !l.cfg.KeyOrder || l.cfg.DelayLetsPass {
		return nil
	}
	l.runs.scan(func(first model.Offset, r run) bool {
		if r.state == Delayed {
			out = append(out, Span{first, r.last})
		}
		return true
	})
	return out
}

// Rekey says that the delayed record at o holds key.
func (l *Ledger) Rekey(o model.Offset, key uint64) {
	if _, r, ok := l.find(o); !ok || r.state != Delayed || l.keys.locks[key] != nil {
		return
	}
	l.keys.locks[key] = &keyLock{holder: o}
	l.keys.byHold[o] = key
}

// Block is a key whose later records wait, and for what.
type Block struct {
	Holder  model.Offset // the record that holds the key; -1 if the key is parked
	State   State        // of the holder
	Until   int64        // when the holder's lock or delay ends, in milliseconds
	Owner   Member       // who holds the holder, if it is in flight
	Waiting int
}

// Blocks lists the keys with the most waiting records, at most limit of them.
func (l *Ledger) Blocks(limit int) []Block {
	var out []Block
	for _, lock := range l.keys.locks {
		if len(lock.line) == 0 && !lock.parked {
			continue
		}
		b := Block{Holder: lock.holder, Waiting: len(lock.line)}
		if lock.parked {
			b.Holder = -1
		} else if _, r, ok := l.find(lock.holder); ok {
			b.State, b.Until, b.Owner = r.state, r.until, r.owner
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b Block) int { return cmp.Or(b.Waiting-a.Waiting, int(a.Holder-b.Holder)) })
	return out[:min(limit, len(out))]
}
