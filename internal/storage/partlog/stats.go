package partlog

import (
	"fmt"
	"sync/atomic"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/partlog/compact"
)

// counters are what the store counts as it works.
type counters struct {
	readErrors   atomic.Int64
	segmentBytes atomic.Int64
	indexBytes   atomic.Int64
	flushed      atomic.Int64
	adopted      atomic.Int64
	merged       atomic.Int64
	compactions  atomic.Int64
	compactedOut atomic.Int64 // records that compaction removed
	checkpoints  atomic.Int64

	checkpointSize atomic.Int64 // of the last one, in bytes

	expiredLogs atomic.Int64
	workErrors  atomic.Int64

	spansChanged atomic.Bool // since the keeper last looked for merges
}

func (c *counters) compacted(s compact.Stats) {
	c.compactions.Add(1)
	c.compactedOut.Add(s.RecordsIn - s.RecordsOut)
}

// Stats are for metrics: what is there now, and counts since Open.
type Stats struct {
	Journal journal.Stats

	Partitions   int
	Bytes        int64 // of batches in all logs
	Segments     int
	SegmentBytes int64 // length of the segments' data files
	Spans        int   // runs of batches in segments; each costs some memory
	Extents      int   // entries in journal files
	TailBytes    int64 // of batches in memory
	SealedFiles  int   // journal files that wait to be settled
	SealedBytes  int64
	OpenFiles    int // handles for reading

	FlushedFiles, AdoptedFiles int64 // journal files
	Merges, Checkpoints        int64
	WrittenSegmentBytes        int64 // batches copied to segments by flush and merge
	WrittenIndexBytes          int64
	Compactions                int64 // of one log each
	CompactedRecords           int64 // that compaction removed
	ExpiredLogs                int64 // starts that retention has moved
	ReadErrors, WorkErrors     int64
}

// Stats looks at every log for a moment: call it every few seconds, not per request.
func (s *Store) Stats() Stats {
	c := &s.stats
	st := Stats{
		Journal: s.journal.Stats(), TailBytes: s.tail.bytes.Load(), OpenFiles: s.files.Open(),
		FlushedFiles: c.flushed.Load(), AdoptedFiles: c.adopted.Load(), Merges: c.merged.Load(),
		Checkpoints: c.checkpoints.Load(), WrittenSegmentBytes: c.segmentBytes.Load(),
		Compactions: c.compactions.Load(), CompactedRecords: c.compactedOut.Load(),
		WrittenIndexBytes: c.indexBytes.Load(), ExpiredLogs: c.expiredLogs.Load(),
		ReadErrors: c.readErrors.Load(), WorkErrors: c.workErrors.Load(),
	}
	for _, l := range s.all() {
		st.Partitions++
		st.Bytes += l.Size()
		l.mu.Lock()
		st.Spans += len(l.spans)
		st.Extents += len(l.extents)
		l.mu.Unlock()
	}
	s.mu.RLock()
	for _, seg := range s.segments {
		st.Segments++
		st.SegmentBytes += seg.size
	}
	s.mu.RUnlock()
	k := &s.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.sealed {
		st.SealedFiles++
		st.SealedBytes += f.Bytes
	}
	return st
}

func fileName(id model.FileID) string { return fmt.Sprintf("%016x", uint64(id)) }
