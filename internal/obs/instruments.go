package obs

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Counter only grows. The zero value is ready.
type Counter struct{ n atomic.Int64 }

// Add adds n, which must not be negative.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Load reads the count.
func (c *Counter) Load() int64 { return c.n.Load() }

// Gauge goes up and down. The zero value is ready.
type Gauge struct{ n atomic.Int64 }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Set replaces the value.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Load reads the value.
func (g *Gauge) Load() int64 { return g.n.Load() }

// histogramBuckets is the number of buckets: bucket i counts values below 2^i
// units, the last one everything.
const histogramBuckets = 32

// Histogram counts values by powers of two of a unit: microseconds for durations,
// or plain numbers. Observing is three atomic additions and no lock. The zero value
// is ready.
type Histogram struct {
	buckets [histogramBuckets]atomic.Int64
	count   atomic.Int64
	sum     atomic.Int64 // nanoseconds for durations, else the values
}

// Observe adds a duration.
func (h *Histogram) Observe(d time.Duration) {
	h.add(max(d, 0).Microseconds(), int64(max(d, 0)))
}

// ObserveN adds a plain number.
func (h *Histogram) ObserveN(n int64) { h.add(max(n, 0), max(n, 0)) }

func (h *Histogram) add(units, sum int64) {
	h.buckets[min(bits.Len64(uint64(units)), histogramBuckets-1)].Add(1)
	h.sum.Add(sum)
	h.count.Add(1)
}

// Snapshot is a look at a histogram.
type Snapshot struct {
	Count, Sum int64
	// Below[i] counts the values of less than 2^i units; the last bound is open.
	Below [histogramBuckets - 1]int64
}

// Snapshot reads the histogram; values added meanwhile may be in part of it.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Count: h.count.Load(), Sum: h.sum.Load()}
	var total int64
	for i := range s.Below {
		total += h.buckets[i].Load()
		s.Below[i] = total
	}
	s.Count = max(s.Count, total)
	return s
}
