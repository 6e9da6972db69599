package partlog

import "sync/atomic"

// tail is the memory tail: the newest entries of all logs, first in first out
// under one budget of bytes. An entry that leaves memory stays readable from its
// file. Buffers belong to the garbage collector: who still reads one keeps it.
type tail struct {
	budget int64
	bytes  atomic.Int64

	// The committer's: it alone pushes and evicts.
	first, last *slot
}

// slot is an entry's place in memory.
type slot struct {
	log  *Log
	next *slot // the committer's

	data []byte // under log.mu; nil when evicted or no longer referred to
}

// push takes s into the tail and evicts what is over the budget. The committer
// calls it with no lock held.
func (t *tail) push(s *slot, size int) {
	if t.last == nil {
		t.first = s
	} else {
		t.last.next = s
	}
	t.last = s
	t.bytes.Add(int64(size))
	for t.first != nil && t.evictFirst() {
		t.first = t.first.next
	}
	if t.first == nil {
		t.last = nil
	}
}

// evictFirst reports whether the first slot is empty now. Slots that were emptied
// by flush or trim are passed over whatever the budget, so the queue stays short.
func (t *tail) evictFirst() bool {
	s := t.first
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.data != nil && t.bytes.Load() > t.budget {
		t.releaseLocked(s)
	}
	return s.data == nil
}

// releaseLocked empties s under its log's lock.
func (t *tail) releaseLocked(s *slot) {
	if s != nil && s.data != nil {
		t.bytes.Add(-int64(len(s.data)))
		s.data = nil
	}
}
