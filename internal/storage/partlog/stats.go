package partlog

import (
	"sync/atomic"

	"github.com/daybook-mq/daybook/internal/storage/journal"
)

// counters are what the store counts as it works.
type counters struct {
	readErrors   atomic.Int64
	segmentBytes atomic.Int64 // batches written to segments
	indexBytes   atomic.Int64
	flushed      atomic.Int64 // journal files
	adopted      atomic.Int64
	checkpoints  atomic.Int64
	workErrors   atomic.Int64
}

// Stats are counts since Open and sizes now, for metrics and the debug pages.
type Stats struct {
	Journal      journal.Stats
	Partitions   int
	TailBytes    int64 // batches held in memory
	ReadErrors   int64
	SegmentBytes int64 // batches written to segments
	IndexBytes   int64
	Flushed      int64 // journal files whose batches went to segments
	Adopted      int64 // journal files that stay as segments
	Checkpoints  int64
	WorkErrors   int64 // of background work
}

// Stats gives the counts.
func (s *Store) Stats() Stats {
	c := &s.stats
	s.mu.RLock()
	partitions := len(s.logs)
	s.mu.RUnlock()
	return Stats{
		Journal: s.journal.Stats(), Partitions: partitions, TailBytes: s.tail.bytes.Load(),
		ReadErrors: c.readErrors.Load(), SegmentBytes: c.segmentBytes.Load(), IndexBytes: c.indexBytes.Load(),
		Flushed: c.flushed.Load(), Adopted: c.adopted.Load(), Checkpoints: c.checkpoints.Load(), WorkErrors: c.workErrors.Load(),
	}
}
