package journal

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openQuiet opens a journal whose sealed files go to the channel.
func openQuiet(t *testing.T, fs vfs.FS) (*Journal, chan Sealed) {
	t.Helper()
	sealed := make(chan Sealed, 100)
	j, err := Open(context.Background(), Options{
		FS: fs, Dir: "d", FileSize: 256 << 10, NextFileID: ids(), PoolFiles: 1,
		OnSeal: func(s Sealed) { sealed <- s },
	}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j, sealed
}

// fillFile appends until a file is sealed; each group's data is n times fill.
func fillFile(t *testing.T, j *Journal, sealed chan Sealed, fill byte) Sealed {
	t.Helper()
	for {
		g := &storage.Group{
			Done: func(model.LSN, error) {},
			Entries: []storage.Entry{{
				Kind: storage.EntryBatches, Part: part(fill, 0), Data: bytes.Repeat([]byte{fill}, 9000),
			}},
		}
		if err := j.Append(g); err != nil {
			t.Fatal(err)
		}
		if err := j.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-sealed:
			return s
		default:
		}
	}
}

// TestZerosAhead: a file that waits is written with zeros once, when files fill
// slowly; its frames are not harmed; under bulk load nothing is written twice.
func TestZerosAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem(0)
		j, sealed := openQuiet(t, mem)
		time.Sleep(10 * time.Second)
		if n := j.Stats().BytesZeroed; n != 0 {
			t.Fatalf("%d bytes zeroed before anything was written", n)
		}
		first := fillFile(t, j, sealed, 1) // and begins the next file
		if n := j.Stats().BytesZeroed; n != 0 {
			t.Fatalf("%d bytes zeroed without a pause", n)
		}
		time.Sleep(10 * time.Second)
		if n := j.Stats().BytesZeroed; n != 256<<10 {
			t.Fatalf("%d bytes zeroed ahead", n)
		}
		second := fillFile(t, j, sealed, 2)
		third := fillFile(t, j, sealed, 3) // the one that was zeroed
		if err := j.Release(first.ID); err != nil {
			t.Fatal(err)
		}
		before := j.Stats().BytesZeroed
		time.Sleep(20 * time.Second)
		if n := j.Stats().BytesZeroed; n != before {
			t.Fatalf("%d bytes zeroed although files stay as segments", n-before)
		}
		got := map[byte]int{}
		for l, err := range j.Read(context.Background(), second.FirstLSN) {
			if err != nil {
				t.Fatal(err)
			}
			fill := l.Entry.Part.Topic[0]
			if bytes.Count(l.Entry.Data, []byte{fill}) != len(l.Entry.Data) {
				t.Fatalf("LSN %d was altered", l.LSN)
			}
			got[fill] += len(l.Entry.Data)
		}
		if got[2] < int(second.DataBytes)-9000 || got[3] < int(third.DataBytes)-9000 {
			t.Fatalf("read %v", got)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPool: recycled files are used again, the pool is bounded, a released file is
// cut to what it holds and left alone.
func TestPool(t *testing.T) {
	mem := vfs.NewMem(0)
	j, sealed := openQuiet(t, mem)
	var all []Sealed
	for i := range 4 {
		all = append(all, fillFile(t, j, sealed, byte(i+1)))
	}
	for _, s := range all[1:] {
		if err := j.Recycle(s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := j.Stats().Spares; n > 2 {
		t.Fatalf("%d spares for a pool of one and the reserve", n)
	}
	if err := j.Release(all[0].ID); err != nil {
		t.Fatal(err)
	}
	if size, err := mem.Size(all[0].Path); err != nil || size != all[0].Bytes {
		t.Fatalf("the released file has %d bytes, %v; it holds %d", size, err, all[0].Bytes)
	}
	if j.Path(all[0].ID) != "" || len(j.Files()) != 0 {
		t.Fatal("the journal still holds what it gave away")
	}
	created := j.Stats().FilesCreated
	fillFile(t, j, sealed, 9)
	fillFile(t, j, sealed, 9)
	if st := j.Stats(); st.FilesRecycled == 0 || st.FilesCreated > created+2 {
		t.Fatalf("%+v", st)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIdleMark: what was acknowledged last is promised soon after, so that damage
// to it is told from a torn tail.
func TestIdleMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem(0)
		j, _ := openQuiet(t, mem)
		var o outcome
		if err := j.Append(o.group(0, 2000, false)); err != nil {
			t.Fatal(err)
		}
		if err := j.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * idleMark)
		synctest.Wait()
		killed := mem.Kill()
		pl := places(t, killed)
		if len(pl) != 2 || len(pl[1].parts) != 0 {
			t.Fatalf("frames %+v", pl)
		}
		changeIn(t, killed, pl[0].path, pl[0].pos+500, 1, func(b []byte) { b[0]++ })
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		_, damage := readAll(t, killed)
		if len(damage) != 1 || damage[0].FirstLSN != 1 {
			t.Fatalf("damage %v", damage)
		}
	})
}
