package bench

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// subBits is how many bits below the leading one tell buckets apart: 7 makes a
// quantile right to within 1 %.
const subBits = 7

// Histogram counts durations in buckets of equal relative width. Any goroutine
// may record; quantiles are read when recording is over.
type Histogram struct {
	buckets [(64 - subBits) << subBits]atomic.Uint64
	count   atomic.Uint64
	sum     atomic.Int64
	max     atomic.Int64
}

// Record counts one duration; a negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	n := max(int64(d), 0)
	h.buckets[bucketOf(uint64(n))].Add(1)
	h.count.Add(1)
	h.sum.Add(n)
	for {
		m := h.max.Load()
		if n <= m || h.max.CompareAndSwap(m, n) {
			return
		}
	}
}

// bucketOf is the identity below 2^subBits, then 2^subBits buckets for each
// power of two.
func bucketOf(n uint64) int {
	shift := bits.Len64(n>>subBits) - 1
	if shift < 0 {
		return int(n)
	}
	return (shift+1)<<subBits | int(n>>shift&(1<<subBits-1))
}

// upperBound is the largest value that falls into a bucket.
func upperBound(bucket int) int64 {
	if bucket < 1<<subBits {
		return int64(bucket)
	}
	shift := bucket>>subBits - 1
	low := (uint64(1)<<subBits | uint64(bucket&(1<<subBits-1))) << shift
	return int64(low + 1<<shift - 1)
}

// Quantile is the duration that a share q of all recorded ones does not exceed;
// 0 when none was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	total := h.count.Load()
	if total == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(total))), 1)
	var seen uint64
	for i := range h.buckets {
		if seen += h.buckets[i].Load(); seen >= rank {
			return time.Duration(min(upperBound(i), h.max.Load()))
		}
	}
	return time.Duration(h.max.Load())
}

// Quantiles are what a report shows of a histogram, in milliseconds.
type Quantiles struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// Quantiles reads h.
func (h *Histogram) Quantiles() *Quantiles {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	q := &Quantiles{
		Count: h.count.Load(), P50: ms(h.Quantile(0.5)), P90: ms(h.Quantile(0.9)),
		P99: ms(h.Quantile(0.99)), P999: ms(h.Quantile(0.999)), Max: ms(time.Duration(h.max.Load())),
	}
	if q.Count > 0 {
		q.Mean = ms(time.Duration(h.sum.Load() / int64(q.Count)))
	}
	return q
}
