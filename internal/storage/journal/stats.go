package journal

import (
	"sync/atomic"
	"time"
)

// SyncBounds are the upper bounds of the sync latency buckets; the last bucket,
// one more, has none.
var SyncBounds = [...]time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 400 * time.Microsecond, 800 * time.Microsecond,
	1600 * time.Microsecond, 3200 * time.Microsecond, 6400 * time.Microsecond, 12800 * time.Microsecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
}

// Stats are counts since Open, for metrics.
type Stats struct {
	Frames, Groups uint64 // Groups by Frames is the size of a batch
	Syncs          uint64
	SyncTime       time.Duration // the sum
	SyncBuckets    [len(SyncBounds) + 1]uint64
	DataBytes      uint64 // batches' bytes
	BytesWritten   uint64 // all that went to journal files, zeros included
	BytesZeroed    uint64 // of it, zeros written ahead
	FilesCreated   uint64
	FilesRecycled  uint64
	QueueGroups    int   // waiting now
	QueueBytes     int64 // accepted and not yet written
	Spares         int
	FreeBytes      uint64
	Space          SpaceState
}

// counters are updated by the goroutines, without locks.
type counters struct {
	frames, groups, syncs     atomic.Uint64
	syncNanos                 atomic.Int64
	buckets                   [len(SyncBounds) + 1]atomic.Uint64
	dataBytes, bytesWritten   atomic.Uint64
	zeroed, created, recycled atomic.Uint64
	space                     spaceGauge
}

func (c *counters) frame(groups int, bytes, data int64) {
	c.frames.Add(1)
	c.groups.Add(uint64(groups))
	c.bytesWritten.Add(uint64(bytes))
	c.dataBytes.Add(uint64(data))
}

func (c *counters) sync(d time.Duration) {
	c.syncs.Add(1)
	c.syncNanos.Add(int64(d))
	i := 0
	for i < len(SyncBounds) && d > SyncBounds[i] {
		i++
	}
	c.buckets[i].Add(1)
}

// Stats gives the counts.
func (j *Journal) Stats() Stats {
	c := &j.stats
	s := Stats{
		Frames: c.frames.Load(), Groups: c.groups.Load(),
		Syncs: c.syncs.Load(), SyncTime: time.Duration(c.syncNanos.Load()),
		DataBytes: c.dataBytes.Load(), BytesWritten: c.bytesWritten.Load(), BytesZeroed: c.zeroed.Load(),
		FilesCreated: c.created.Load(), FilesRecycled: c.recycled.Load(),
		FreeBytes: c.space.free.Load(), Space: j.SpaceState(),
	}
	for i := range c.buckets {
		s.SyncBuckets[i] = c.buckets[i].Load()
	}
	j.mu.Lock()
	s.QueueGroups, s.QueueBytes = len(j.mu.queue), j.mu.pending
	j.mu.Unlock()
	j.prep.mu.Lock()
	s.Spares = len(j.prep.mu.spares)
	j.prep.mu.Unlock()
	return s
}
