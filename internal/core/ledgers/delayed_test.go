package ledgers

import (
	"runtime"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/model"
)

// BenchmarkTenMillionDelayed holds ten million records, each delayed to a time of
// its own, in no order, and reports how late they become ready while a hundred are
// due each millisecond for three seconds, and what one costs in memory.
func BenchmarkTenMillionDelayed(b *testing.B) {
	const n, perMilli = 10_000_000, 100
	for b.Loop() {
		node := newNode(b, Config{})
		node.produce(0, 1)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now().Add(time.Minute).UnixMilli()
		h := held{seq: 1, snap: ledger.Snapshot{End: n}}
		h.snap.Deltas = make([]ledger.Delta, 0, n)
		for o := range model.Offset(n) {
			h.snap.Deltas = append(h.snap.Deltas, ledger.Delta{Span: ledger.Span{First: o, Last: o}, State: ledger.Delayed, Until: start + int64(o)*7_919%n/perMilli})
		}
		node.k.held[Key{"share/g", node.part("t").ID()}] = h
		s := node.subscribe()
		h = held{}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "bytes/record")
		worst, look := int64(0), time.NewTicker(time.Millisecond)
		for now := int64(0); now < start+3000; now = time.Now().UnixMilli() {
			<-look.C
			due := (time.Now().UnixMilli() - start) * perMilli
			worst = max(worst, (due-s.Describe().Ready)/perMilli)
		}
		look.Stop()
		b.ReportMetric(float64(worst), "ms-late-at-most")
	}
}
