package partlog

import "sync/atomic"

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
