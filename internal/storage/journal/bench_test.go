package journal

import (
	"context"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// TestAppendAllocations is the budget of the hot path: an append allocates
// nothing of its own, and what the committer allocates per frame is shared.
func TestAppendAllocations(t *testing.T) {
	j, err := Open(context.Background(), Options{FS: vfs.OS{}, Dir: t.TempDir(), FileSize: 4 << 20, NextFileID: ids()}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	const n = 2000
	var out sync.WaitGroup
	groups := make([]storage.Group, 2*n+2)
	data := make([]byte, 100)
	for i := range groups {
		groups[i] = storage.Group{
			Entries: []storage.Entry{{Kind: storage.EntryBatches, Part: part(1, int32(i%16)), Data: data}},
			Done:    func(model.LSN, error) { out.Done() },
		}
	}
	next := 0
	run := func() {
		out.Add(1)
		if err := j.Append(&groups[next]); err != nil {
			t.Error(err)
		}
		next++
	}
	for range n { // grows the queues
		run()
	}
	out.Wait()
	perAppend := testing.AllocsPerRun(n, run)
	out.Wait()
	if perAppend > 1 {
		t.Fatalf("%.2f allocations per append", perAppend)
	}
}

// BenchmarkAppend is the journal under many producers that each wait for their
// group, as a connection does: groups per second and the data's MB/s.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ producers, size int }{{1, 1 << 10}, {16, 1 << 10}, {256, 1 << 10}, {16, 64 << 10}, {16, 1 << 20}} {
		b.Run(fmt.Sprintf("producers=%d/bytes=%d", c.producers, c.size), func(b *testing.B) {
			dir := b.TempDir()
			var j *Journal
			sealed := make(chan model.FileID, 1000)
			j, err := Open(context.Background(), Options{
				FS: vfs.OS{}, Dir: dir, NextFileID: ids(),
				OnSeal: func(s Sealed) { sealed <- s.ID },
			}, 1, nil)
			if err != nil {
				b.Fatal(err)
			}
			recycled := make(chan struct{})
			go func() { // keeps the directory small, as flushing does
				defer close(recycled)
				for id := range sealed {
					if err := j.Recycle(id); err != nil {
						b.Error(err)
					}
				}
			}()
			data := make([]byte, c.size)
			for i := range data {
				data[i] = byte(i * 7)
			}
			b.SetBytes(int64(c.size))
			b.ResetTimer()
			var wg sync.WaitGroup
			for p := range c.producers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					done := make(chan error, 1)
					for i := p; i < b.N; i += c.producers {
						g := &storage.Group{
							Entries: []storage.Entry{{Kind: storage.EntryBatches, Part: part(1, int32(p%16)), Data: data}},
							Done:    func(_ model.LSN, err error) { done <- err },
						}
						if err := j.Append(g); err != nil {
							b.Error(err)
							return
						}
						if err := <-done; err != nil {
							b.Error(err)
						}
					}
				}()
			}
			wg.Wait()
			b.StopTimer()
			st := j.Stats()
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
			close(sealed)
			<-recycled
			if st.Frames == 0 {
				return
			}
			b.ReportMetric(float64(st.Groups)/float64(st.Frames), "groups/sync")
			b.ReportMetric(float64(st.SyncTime.Microseconds())/float64(st.Syncs), "µs/sync")
			b.ReportMetric(float64(st.BytesWritten)/float64(max(st.DataBytes, 1)), "written/data")
			b.ReportMetric(rawMBps(b, dir, int(st.BytesWritten/st.Frames), int(min(st.Frames, 2000))), "raw-MB/s")
		})
	}
}

// rawMBps appends and syncs n writes of size bytes to a growing file: what the
// disk itself gives for the frames that the run wrote.
func rawMBps(b *testing.B, dir string, size, n int) float64 {
	f, err := vfs.OS{}.Create(path.Join(dir, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7)
	}
	start := time.Now()
	for i := range n {
		if _, err := f.WriteAt(data, int64(i*size)); err != nil {
			b.Fatal(err)
		}
		if err := f.SyncData(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(size*n) / 1e6 / time.Since(start).Seconds()
}
