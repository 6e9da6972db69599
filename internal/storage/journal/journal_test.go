package journal

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// ids gives file ids that rise across the opens of one test.
func ids() func() model.FileID {
	var n atomic.Uint64
	return func() model.FileID { return model.FileID(n.Add(1)) }
}

func part(topic byte, index int32) model.PartitionID {
	return model.PartitionID{Topic: model.TopicID{topic}, Index: index}
}

func TestAppendAndReplay(t *testing.T) {
	o := Options{FS: vfs.OS{}, Dir: t.TempDir(), FileSize: 64 << 10, NextFileID: ids()}
	var sealed []Sealed
	o.OnSeal = func(s Sealed) { sealed = append(sealed, s) }
	j, err := Open(context.Background(), o, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Int32
	for i := range 200 {
		g := &storage.Group{
			Entries: []storage.Entry{{Kind: storage.EntryBatches, Part: part(1, int32(i%3)), Base: model.Offset(i), Last: model.Offset(i), Data: fmt.Appendf(nil, "record %d %01000d", i, i)}},
			Done: func(_ model.LSN, err error) {
				if err != nil {
					t.Error(err)
				}
				done.Add(1)
			},
		}
		if err := j.Append(g); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	if done.Load() != 200 {
		t.Fatalf("%d groups done after the barrier", done.Load())
	}
	n := 0
	for l, err := range j.Read(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		n += len(l.Entry.Data)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if len(sealed) < 3 {
		t.Fatalf("only %d files sealed", len(sealed))
	}
	sealed = nil
	m := 0
	j, err = Open(context.Background(), o, 1, func(l storage.Located) error { m += len(l.Entry.Data); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 || n != m || len(j.Damage()) > 0 {
		t.Fatalf("read %d bytes, replayed %d, damage %v", n, m, j.Damage())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
