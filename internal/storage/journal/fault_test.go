package journal

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// outcome collects what Done said.
type outcome struct {
	mu   sync.Mutex
	lsns []model.LSN
	errs []error
}

func (o *outcome) done(lsn model.LSN, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	o.lsns = append(o.lsns, lsn)
}

func (o *outcome) counts() (good, bad int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.lsns), len(o.errs)
}

// group makes a group of one entry with size bytes.
func (o *outcome) group(offset, size int, essential bool) *storage.Group {
	return &storage.Group{
		Essential: essential, Done: o.done,
		Entries: []storage.Entry{{
			Kind: storage.EntryBatches, Part: part(1, 0), Base: model.Offset(offset), Last: model.Offset(offset),
			Data: make([]byte, size),
		}},
	}
}

func wantClass(t *testing.T, err error, class model.Class) {
	t.Helper()
	if err == nil || model.ClassOf(err) != class {
		t.Fatalf("got error %v (class %d), want class %d", err, model.ClassOf(err), class)
	}
}

// replayed counts the entries that a fresh Open of fs finds.
func replayed(t *testing.T, fs vfs.FS) int {
	t.Helper()
	n := 0
	o := Options{FS: fs, Dir: "d", FileSize: 64 << 10, NextFileID: func() func() model.FileID {
		id := model.FileID(1000)
		return func() model.FileID { id++; return id }
	}()}
	j, err := Open(context.Background(), o, 1, func(l storage.Located) error {
		n += int(l.Entry.Last - l.Entry.Base + 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Damage()) > 0 {
		t.Fatalf("damage: %v", &j.Damage()[0])
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitFor polls cond; the journal's goroutines offer no other sign.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func TestFailedDiskStops(t *testing.T) {
	for name, op := range map[string]vfs.Op{"sync": vfs.OpSync, "write": vfs.OpWrite} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem(0)
			fs := vfs.NewFault(mem)
			fatal := make(chan error, 10)
			j, err := Open(context.Background(), Options{
				FS: fs, Dir: "d", FileSize: 64 << 10, NextFileID: ids(), OnFatal: func(err error) { fatal <- err },
			}, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			var o outcome
			for i := range 10 {
				if err := j.Append(o.group(i, 100, false)); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Barrier(context.Background()); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "next file and reserve", func() bool { return j.Stats().FilesCreated == 3 })
			fs.Inject(vfs.Rule{Op: op, Times: 1, Err: syscall.EIO})
			for i := range 50 {
				if err := j.Append(o.group(10+i, 100, true)); err != nil {
					wantClass(t, err, model.ClassStorage)
				}
			}
			if err := <-fatal; !errors.Is(err, syscall.EIO) {
				t.Fatalf("OnFatal got %v", err)
			}
			wantClass(t, j.Append(o.group(99, 100, true)), model.ClassStorage)
			wantClass(t, j.Barrier(context.Background()), model.ClassStorage)
			wantClass(t, j.Rotate(), model.ClassStorage)
			syncs := fs.Seen(vfs.OpSync)
			wantClass(t, j.Close(), model.ClassStorage)
			good, bad := o.counts()
			if good != 10 || bad == 0 || len(fatal) != 0 {
				t.Fatalf("%d done, %d failed, %d more calls of OnFatal", good, bad, len(fatal))
			}
			if fs.Seen(vfs.OpSync) != syncs {
				t.Fatal("something was synced after the failure")
			}
			for seed := range uint64(20) {
				if n := replayed(t, mem.Crash(seed)); n < 10 || n > 10+bad {
					t.Fatalf("%d entries replayed, 10 were acknowledged, %d not", n, bad)
				}
			}
		})
	}
}

func TestDiskFullRefusesAndRecovers(t *testing.T) {
	const fileSize = 64 << 10
	mem := vfs.NewMem(4*fileSize + 1000)
	j, err := Open(context.Background(), Options{
		FS: mem, Dir: "d", FileSize: fileSize, NextFileID: ids(), Limits: SpaceLimits{Soft: 1, Hard: 1},
	}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	waitFor(t, "reserve", func() bool { return j.Stats().Spares == 1 })
	var o outcome
	accepted := 0
	for err = nil; err == nil; accepted++ {
		if err = j.Append(o.group(accepted, 3000, false)); err == nil {
			err = j.Barrier(context.Background())
		}
	}
	accepted--
	wantClass(t, err, model.ClassDiskFull)
	if !vfs.IsNoSpace(err) {
		t.Fatalf("the cause is missing: %v", err)
	}
	if accepted < 2*fileSize/4000 {
		t.Fatalf("refused after %d groups although there was room", accepted)
	}

	// What frees space may still use the rest of the file and the reserve.
	essential := 0
	for err = nil; err == nil; essential++ {
		if err = j.Append(o.group(accepted+essential, 3000, true)); err == nil {
			err = j.Barrier(context.Background())
		}
	}
	essential--
	wantClass(t, err, model.ClassDiskFull)
	if essential < fileSize/4000 {
		t.Fatalf("the reserve took only %d groups", essential)
	}
	wantClass(t, j.Append(o.group(0, 3000, false)), model.ClassDiskFull)
	if good, bad := o.counts(); good != accepted+essential || bad != 0 {
		t.Fatalf("%d groups done, %d failed, %d were accepted", good, bad, accepted+essential)
	}
	n := 0
	for l, err := range j.Read(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		n += len(l.Entry.Data) / 3000
	}
	if n != accepted+essential {
		t.Fatalf("%d groups can be read, %d were accepted", n, accepted+essential)
	}

	mem.SetTotal(20 * fileSize)
	j.CheckSpace()
	waitFor(t, "room", func() bool { return j.Append(o.group(accepted+essential, 3000, false)) == nil })
	waitFor(t, "a new reserve", func() bool { j.CheckSpace(); return j.Stats().Spares == 1 })
	if err := j.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestStartOnFullDisk(t *testing.T) {
	const fileSize = 64 << 10
	mem := vfs.NewMem(0)
	id := ids()
	o := Options{FS: mem, Dir: "d", FileSize: fileSize, NextFileID: id, Limits: SpaceLimits{Soft: 1, Hard: 1}}
	var out outcome
	j, err := Open(context.Background(), o, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(out.group(0, 100, false)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "reserve", func() bool { return j.Stats().FilesCreated == 3 })
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	mem.SetTotal(1)
	for range 3 { // starts must not use up what they need
		n := 0
		if j, err = Open(context.Background(), o, 1, func(storage.Located) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		if n != 1 {
			t.Fatalf("%d entries replayed", n)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if j, err = Open(context.Background(), o, 1, func(storage.Located) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(out.group(1, 100, true)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if good, _ := out.counts(); good != 2 {
		t.Fatalf("%d groups done", good)
	}
}

func TestHardLimit(t *testing.T) {
	mem := vfs.NewMem(1 << 20)
	states := make(chan SpaceState, 10)
	j, err := Open(context.Background(), Options{
		FS: mem, Dir: "d", FileSize: 64 << 10, NextFileID: ids(), OnSpace: func(s SpaceState) { states <- s },
		Limits: SpaceLimits{Soft: 500 << 10, Hard: 300 << 10},
	}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var o outcome
	mem.SetTotal(600 << 10)
	j.CheckSpace()
	if got := <-states; got != SpaceSoft {
		t.Fatalf("state %v", got)
	}
	if err := j.Append(o.group(0, 10, false)); err != nil {
		t.Fatal(err)
	}
	mem.SetTotal(400 << 10)
	j.CheckSpace()
	if got := <-states; got != SpaceHard {
		t.Fatalf("state %v", got)
	}
	wantClass(t, j.Append(o.group(1, 10, false)), model.ClassDiskFull)
	if err := j.Append(o.group(1, 10, true)); err != nil {
		t.Fatal(err)
	}
	mem.SetTotal(1 << 20)
	j.CheckSpace()
	if got := <-states; got != SpaceOK {
		t.Fatalf("state %v", got)
	}
	if err := j.Append(o.group(2, 10, false)); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	j, err := Open(context.Background(), Options{FS: vfs.NewMem(0), Dir: "d", FileSize: 64 << 10, NextFileID: ids()}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	wantClass(t, j.Append(o.group(0, 64<<10, true)), model.ClassTooLarge)
	if err := j.Append(o.group(0, 64<<10-4096-512-100, true)); err != nil {
		t.Fatal(err) // the largest that fits
	}
	wantClass(t, j.Recycle(77), model.ClassNotFound)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := j.Barrier(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if good, bad := o.counts(); good != 1 || bad != 0 {
		t.Fatalf("%d done, %d failed", good, bad)
	}
	wantClass(t, j.Append(o.group(1, 1, true)), model.ClassClosed)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), Options{FS: vfs.NewMem(0), Dir: "d", FileSize: 1000, NextFileID: ids()}, 1, nil)
	wantClass(t, err, model.ClassInvalid)
}
