package partlog

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
)

// load appends rounds of one batch of size bytes to each of n partitions, as many
// groups in flight as there are tokens.
func load(b *testing.B, s *Store, n, size, rounds int) {
	b.Helper()
	tokens := make(chan struct{}, 256)
	ends := make([]model.Offset, n)
	for range rounds {
		for i := range n {
			batch := plain(1, size-model.BatchHeaderSize, byte(i), time.Now().UnixMilli()).at(ends[i])
			ends[i]++
			tokens <- struct{}{}
			err := s.Append(&storage.Group{
				Entries: []storage.Entry{entry(part(1, int32(i)), batch)},
				Done: func(_ model.LSN, err error) {
					if err != nil {
						b.Error(err)
					}
					<-tokens
				},
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := s.Barrier(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func benchOptions(b *testing.B) Options { return Options{Dir: b.TempDir()} }

// BenchmarkBulk appends 1 GiB and reads it back; it reports both rates and what
// was written to disk for each byte.
func BenchmarkBulk(b *testing.B) {
	for _, c := range []struct{ partitions, size int }{{16, 64 << 10}, {16, 1 << 10}, {1000, 16 << 10}, {1000, 1 << 10}, {10_000, 1 << 10}} {
		b.Run(fmt.Sprintf("partitions=%d/batch=%d", c.partitions, c.size), func(b *testing.B) {
			for range b.N {
				s := open(b, benchOptions(b))
				total := 1 << 30
				start := time.Now()
				load(b, s, c.partitions, c.size, total/c.size/c.partitions)
				wrote := time.Since(start)
				for s.Stats().SealedFiles > 4 {
					time.Sleep(10 * time.Millisecond)
				}
				st := s.Stats()
				start = time.Now()
				read := 0
				for i := range c.partitions {
					l := s.Log(part(1, int32(i)))
					for from := model.Offset(0); from < l.End(); {
						chunk, err := l.Read(context.Background(), from, l.End(), 1<<20, true)
						if err != nil {
							b.Fatal(err)
						}
						read += chunk.Bytes
						from = chunk.Next
					}
				}
				b.ReportMetric(float64(total)/wrote.Seconds()/1e6, "append-MB/s")
				b.ReportMetric(float64(read)/time.Since(start).Seconds()/1e6, "read-MB/s")
				b.ReportMetric(float64(st.Journal.BytesWritten+uint64(st.WrittenSegmentBytes+st.WrittenIndexBytes))/float64(total), "written/byte")
				b.ReportMetric(float64(st.Spans), "spans")
				b.ReportMetric(float64(st.Extents), "extents")
				closeStore(b, s)
			}
		})
	}
}

// BenchmarkReopen opens a store with a full journal, and one with many partitions.
func BenchmarkReopen(b *testing.B) {
	for _, c := range []struct{ partitions, size, total int }{{1, 1 << 10, 0}, {100, 1 << 10, 900 << 20}, {10_000, 1 << 10, 100 << 20}} {
		b.Run(fmt.Sprintf("partitions=%d/journal=%dMiB", c.partitions, c.total>>20), func(b *testing.B) {
			o := benchOptions(b)
			o.JournalCap = 1 << 40 // keep it all in the journal
			s := open(b, o)
			s.stopKeeper()
			load(b, s, c.partitions, c.size, c.total/c.size/c.partitions)
			closeStore(b, s)
			for b.Loop() {
				start := time.Now()
				s := open(b, o)
				b.ReportMetric(time.Since(start).Seconds()*1000, "open-ms")
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapInuse)/1e6, "heap-MB")
				s.stopKeeper()
				closeStore(b, s)
			}
		})
	}
}
