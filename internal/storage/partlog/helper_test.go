package partlog

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// testBatch is a batch of n record slots with payload as its records' bytes.
type testBatch struct {
	n        int
	payload  []byte
	ts       int64
	producer int64
	attrs    int16
	epoch    int32
}

// at encodes the batch at a base offset.
func (tb testBatch) at(base model.Offset) model.Batch {
	b := make(model.Batch, model.BatchHeaderSize+len(tb.payload))
	be := binary.BigEndian
	be.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	be.PutUint16(b[21:], uint16(tb.attrs))
	be.PutUint32(b[23:], uint32(tb.n-1))
	be.PutUint64(b[27:], uint64(tb.ts))
	be.PutUint64(b[35:], uint64(tb.ts))
	be.PutUint64(b[43:], uint64(tb.producer))
	be.PutUint32(b[57:], uint32(tb.n))
	copy(b[model.BatchHeaderSize:], tb.payload)
	b.SetBaseOffset(base)
	b.SetLeaderEpoch(tb.epoch)
	b.SealCRC()
	return b
}

func part(topic byte, index int32) model.PartitionID {
	return model.PartitionID{Topic: model.TopicID{topic}, Index: index}
}

// testOptions are small files and a small tail, so that little data meets every path.
func testOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, Dir: "data", JournalFileSize: 256 << 10, JournalCap: 1 << 20, MemoryBudget: 32 << 10,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// put appends one batch at the log's end and waits until it is durable.
func put(t testing.TB, s *Store, p model.PartitionID, tb testBatch) model.Batch {
	t.Helper()
	b := tb.at(s.Log(p).End())
	done := make(chan error, 1)
	err := s.Append(&storage.Group{
		Entries: []storage.Entry{entry(p, b)},
		Done:    func(_ model.LSN, err error) { done <- err },
	})
	if err == nil {
		err = <-done
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func entry(p model.PartitionID, b model.Batch) storage.Entry {
	return storage.Entry{
		Kind: storage.EntryBatches, Part: p, Base: b.BaseOffset(), Last: b.LastOffset(),
		MaxTimestamp: b.MaxTimestamp(), Data: b,
	}
}

func groupOf(done func(error), entries ...storage.Entry) *storage.Group {
	return &storage.Group{Entries: entries, Done: func(_ model.LSN, err error) { done(err) }}
}

// plain is a batch without producer whose payload is size bytes of fill.
func plain(n, size int, fill byte, ts int64) testBatch {
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = fill + byte(i)
	}
	return testBatch{n: n, payload: payload, ts: ts, producer: model.NoProducer}
}

// readAll reads from an offset to the log's end in chunks of maxBytes.
func readAll(t testing.TB, l *Log, from model.Offset, maxBytes int) []model.Batch {
	t.Helper()
	var all []model.Batch
	for from < l.End() {
		c, err := l.Read(context.Background(), from, l.End(), maxBytes, true)
		if err != nil {
			t.Fatalf("read %v at %d: %v", l.ID(), from, err)
		}
		if c.Next <= from {
			t.Fatalf("read %v at %d of %d does not move on: %+v", l.ID(), from, l.End(), c)
		}
		all = append(all, batches(t, c)...)
		from = c.Next
	}
	return all
}

// batches cuts a chunk up.
func batches(t testing.TB, c Chunk) []model.Batch {
	t.Helper()
	var all []model.Batch
	n := 0
	for _, data := range c.Data {
		n += len(data)
		for len(data) > 0 {
			b, rest, err := model.NextBatch(data)
			if err != nil {
				t.Fatal(err)
			}
			if !b.ValidCRC() {
				t.Fatalf("batch at %d is altered", b.BaseOffset())
			}
			all, data = append(all, b), rest
		}
	}
	if n != c.Bytes {
		t.Fatalf("chunk says %d bytes and has %d", c.Bytes, n)
	}
	return all
}

// work runs one round of background work in the test's goroutine.
func work(t testing.TB, s *Store) {
	t.Helper()
	if err := s.work(context.Background()); err != nil {
		t.Fatal(err)
	}
}

var epoch2020 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
