package obs

import (
	"testing"
	"time"
)

func TestHistogramCountsByPowersOfTwo(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{-1, 0, time.Microsecond, 3 * time.Microsecond, time.Hour} {
		h.Observe(d)
	}
	s := h.Snapshot()
	if s.Count != 5 || s.Sum != int64(time.Hour+4*time.Microsecond) {
		t.Errorf("count %d, sum %d", s.Count, s.Sum)
	}
	// Below 1 µs: the negative and the zero; below 2 µs: 1 µs too; below 4 µs: 3 µs too.
	if s.Below[0] != 2 || s.Below[1] != 3 || s.Below[2] != 4 || s.Below[30] != 4 {
		t.Errorf("below: %v", s.Below)
	}
}

func TestInstrumentsDoNotAllocate(t *testing.T) {
	var h Histogram
	var c Counter
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond); c.Inc() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHistogram(b *testing.B) {
	var h Histogram
	for b.Loop() {
		h.Observe(700 * time.Microsecond)
	}
}
