package partlog

import (
	"bytes"
	"context"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func TestAppendReadReopen(t *testing.T) {
	fs := vfs.NewMem(0)
	s := open(t, testOptions(fs))
	p, q := part(1, 0), part(2, 3)
	var want []model.Batch
	for i := range 200 {
		want = append(want, put(t, s, p, plain(1+i%3, 500+i, byte(i), int64(i))))
		put(t, s, q, plain(1, 100, byte(i), int64(i)))
	}
	check := func(s *Store) {
		t.Helper()
		l := s.Log(p)
		if l.Start() != 0 || l.End() != want[len(want)-1].LastOffset()+1 {
			t.Fatalf("log is %d to %d", l.Start(), l.End())
		}
		for _, maxBytes := range []int{1, 700, 10_000, 1 << 20} {
			got := readAll(t, l, 0, maxBytes)
			if len(got) != len(want) {
				t.Fatalf("%d batches, want %d", len(got), len(want))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("batch %d differs", i)
				}
			}
		}
	}
	check(s)
	if s.Incarnation() != 0 {
		t.Errorf("incarnation %d", s.Incarnation())
	}
	closeStore(t, s)
	s = open(t, testOptions(fs))
	check(s)
	if s.Incarnation() != 1 {
		t.Errorf("incarnation %d", s.Incarnation())
	}
	if rec := s.Log(q).Recovered(); len(rec.Since) != 1 || rec.Since[0].BaseOffset() != 0 {
		t.Errorf("a log without producers needs only the first batch's epoch: %d batches", len(rec.Since))
	}
	closeStore(t, s)
}

func TestReadBounds(t *testing.T) {
	s := open(t, testOptions(vfs.NewMem(0)))
	defer closeStore(t, s)
	p := part(1, 0)
	for i := range 10 {
		put(t, s, p, plain(10, 100, byte(i), int64(i)))
	}
	l, ctx := s.Log(p), context.Background()
	size := model.BatchHeaderSize + 100
	for _, c := range []struct {
		name        string
		from, end   model.Offset
		max         int
		whole       bool
		first, next model.Offset
		n           int
	}{
		{"from inside a batch gives the whole batch", 15, 100, size, true, 10, 20, 1},
		{"the end cuts at a batch boundary", 0, 25, 1 << 20, true, 0, 20, 2},
		{"the first batch comes whole", 0, 100, 1, true, 0, 10, 1},
		{"or not at all", 0, 100, size - 1, false, 0, 0, 0},
		{"as many as fit", 0, 100, 3*size + size/2, true, 0, 30, 3},
		{"at the end nothing", 100, 100, 1 << 20, true, 0, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := l.Read(ctx, c.from, c.end, c.max, c.whole)
			if err != nil {
				t.Fatal(err)
			}
			bs := batches(t, got)
			if len(bs) != c.n || got.Next != c.next || c.n > 0 && bs[0].BaseOffset() != c.first {
				t.Errorf("%d batches, next %d", len(bs), got.Next)
			}
		})
	}
	for _, from := range []model.Offset{-1, 101} {
		if _, err := l.Read(ctx, from, 100, 1, true); model.ClassOf(err) != model.ClassOutOfRange {
			t.Errorf("read at %d: %v", from, err)
		}
	}
}

// A trim that crosses a drop, as retention's may, does not bring the log back.
func TestATrimAfterADropMakesNoLog(t *testing.T) {
	fs := vfs.NewMem(0)
	o := testOptions(fs)
	s := open(t, o)
	p := part(1, 0)
	put(t, s, p, plain(1, 100, 1, 1))
	await(t, s.Log(p).Drop)
	await(t, func(done func(error)) error {
		return s.Append(&storage.Group{
			Entries: []storage.Entry{{Kind: storage.EntryTrim, Part: p, Base: 1, Last: 1, MaxTimestamp: -1}},
			Done:    func(_ model.LSN, err error) { done(err) },
		})
	})
	if l := s.known(p); l != nil {
		t.Errorf("the log is back, from %d to %d", l.Start(), l.End())
	}
	closeStore(t, s)
	s = open(t, o)
	defer closeStore(t, s)
	if l := s.known(p); l != nil {
		t.Errorf("after a restart the log is back, from %d to %d", l.Start(), l.End())
	}
}
