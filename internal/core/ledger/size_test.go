package ledger

import (
	"runtime"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
)

// bytesPer measures the heap that build leaves behind, for each of n.
func bytesPer(n int, build func() *Ledger) (float64, *Ledger) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := build()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(n), l
}

// A delayed, in-flight or out-of-order settled record costs at most 100 bytes, and
// ready ones nothing.
func TestMemoryPerRecordIsBounded(t *testing.T) {
	const n, most = 200_000, 100
	for name, build := range map[string]func() *Ledger{
		"delayed, each to its own time": func() *Ledger {
			l := New(0, Config{})
			for i := range model.Offset(n) {
				l.Delay(Span{i, i}, int64(1_000_000+i*7%n))
			}
			return l
		},
		"in flight, each with its own lock": func() *Ledger {
			l := New(0, Config{MaxInFlight: n})
			for i := range model.Offset(n) {
				l.Acquire(1, int64(i), []Candidate{{Span: Span{i, i}}}, 1)
			}
			return l
		},
		"every other one settled": func() *Ledger {
			l := New(0, Config{MaxInFlight: 10})
			for i := range model.Offset(n) {
				l.Acquire(1, 1, []Candidate{{Span: Span{2*i + 1, 2*i + 1}}}, 1)
				if _, err := l.Settle(1, Settlement{Span: Span{2*i + 1, 2*i + 1}}); err != nil {
					t.Fatal(err)
				}
			}
			return l
		},
	} {
		per, l := bytesPer(n, build)
		t.Logf("%s: %.1f bytes each", name, per)
		if per > most {
			t.Errorf("%s: %.1f bytes each, at most %d", name, per, most)
		}
		runtime.KeepAlive(l)
	}
	l := New(0, Config{})
	l.extendTo(10_000_000)
	if n := l.runs.len(); n != 1 {
		t.Errorf("ten million ready records are %d runs", n)
	}
}

// BenchmarkTick releases delayed records as their times come, out of 10 million.
func BenchmarkTick(b *testing.B) {
	const n = 10_000_000
	l := New(0, Config{})
	for i := range model.Offset(n) {
		l.Delay(Span{i, i}, int64(i))
	}
	now := int64(0)
	for b.Loop() {
		now++
		if len(l.Tick(now).Deltas) == 0 && now < n {
			b.Fatal("nothing was due")
		}
	}
	b.ReportMetric(float64(l.Counts().Runs), "runs")
}

// BenchmarkAcceptOneByOne is the hot path of a share group or queue.
func BenchmarkAcceptOneByOne(b *testing.B) {
	l := New(0, Config{MaxInFlight: 10_000})
	o := model.Offset(0)
	for b.Loop() {
		l.Acquire(1, 1<<40, []Candidate{{Span: Span{o, o}}}, 1)
		if _, err := l.Settle(1, Settlement{Span: Span{o, o}}); err != nil {
			b.Fatal(err)
		}
		o++
	}
}
