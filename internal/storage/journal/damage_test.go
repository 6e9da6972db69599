package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// writeJournal fills dir "d" of a new file system with a few small files and
// closes the journal.
func writeJournal(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem(0)
	j, err := Open(context.Background(), Options{FS: mem, Dir: "d", FileSize: 16 << 10, NextFileID: ids()}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var out outcome
	for i := range 40 {
		g := &storage.Group{Done: out.done}
		for range 1 + rng.IntN(3) {
			data := make([]byte, 1+rng.IntN(800))
			for k := range data {
				data[k] = byte(rng.Uint32())
			}
			o := model.Offset(i)
			g.Entries = append(g.Entries, storage.Entry{Kind: storage.EntryBatches, Part: part(byte(rng.IntN(3)), 0), Base: o, Last: o, Data: data})
		}
		if err := j.Append(g); err != nil {
			t.Fatal(err)
		}
		if err := j.Barrier(context.Background()); err != nil { // a frame each
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return mem
}

// readAll opens the journal in mem and gives what is replayed, by LSN, and the damage.
func readAll(t *testing.T, mem *vfs.Mem) (map[model.LSN]string, []Damage) {
	t.Helper()
	got := make(map[model.LSN]string)
	id := model.FileID(1 << 20)
	j, err := Open(context.Background(), Options{
		FS: mem, Dir: "d", FileSize: 16 << 10, NextFileID: func() model.FileID { id++; return id },
	}, 1, func(l storage.Located) error {
		got[l.LSN] += fmt.Sprintf("%v %d %x;", l.Entry.Part, l.Entry.Base, l.Entry.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return got, j.Damage()
}

// place is a frame of the undamaged journal.
type place struct {
	path      string
	file      model.FileID
	pos, end  int64
	head      int64
	lsn       model.LSN
	parts     []model.PartitionID
	finalMark bool
}

func places(t *testing.T, mem *vfs.Mem) (all []place) {
	t.Helper()
	names, err := mem.List("d")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		if !ok || ext != format.ExtData {
			continue
		}
		p := path.Join("d", name)
		f, err := mem.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		size, _ := f.Size()
		s := format.NewScanner(f, id, size, format.Whole)
		for {
			frame, err := s.Next()
			if err != nil {
				break
			}
			pl := place{path: p, file: id, pos: frame.Pos, end: frame.Pos + int64(frame.Length), head: frame.HeadSize(), lsn: frame.LSN}
			for _, it := range frame.Items {
				pl.parts = append(pl.parts, it.Part)
			}
			slices.SortFunc(pl.parts, model.PartitionID.Compare)
			pl.parts = slices.Compact(pl.parts)
			all = append(all, pl)
		}
	}
	all[len(all)-1].finalMark = true
	return all
}

// change applies edit to the bytes at pos of a file in a copy of mem.
func change(t *testing.T, mem *vfs.Mem, name string, pos, n int64, edit func([]byte)) *vfs.Mem {
	t.Helper()
	c := mem.Crash(1)
	changeIn(t, c, name, pos, n, edit)
	return c
}

func changeIn(t *testing.T, c *vfs.Mem, name string, pos, n int64, edit func([]byte)) {
	t.Helper()
	f, err := c.OpenRW(name)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, pos); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	edit(b)
	if _, err := f.WriteAt(b, pos); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFlippedByteIsFound(t *testing.T) {
	mem := writeJournal(t)
	want, damage := readAll(t, mem.Crash(1))
	all := places(t, mem)
	if len(want) != 40 || len(damage) != 0 || len(all) < 44 {
		t.Fatalf("%d frames replayed, damage %v, %d frames", len(want), damage, len(all))
	}
	flips := 0
	for i, pl := range all {
		for pos := pl.pos; pos < pl.end; pos++ {
			inHead := pos < pl.pos+pl.head
			step := int64(193) // in data and padding
			switch {
			case inHead && i%4 == 0:
				step = 1
			case inHead:
				step = 7
			}
			if (pos-pl.pos)%step != 0 && pos != pl.end-1 && pos != pl.pos+pl.head {
				continue
			}
			flips++
			got, damage := readAll(t, change(t, mem, pl.path, pos, 1, func(b []byte) { b[0] ^= 1 << (pos % 8) }))
			checkLoss(t, fmt.Sprintf("%s byte %d (frame at %d, LSN %d)", pl.path, pos, pl.pos, pl.lsn), pl, !inHead, want, got, damage)
		}
	}
	t.Logf("%d flips", flips)
}

// checkLoss demands that exactly the frame pl is missing and is named.
func checkLoss(t *testing.T, what string, pl place, headRight bool, want, got map[model.LSN]string, damage []Damage) {
	t.Helper()
	less := maps.Clone(want)
	delete(less, pl.lsn)
	if !maps.Equal(got, less) {
		t.Fatalf("%s: %d frames replayed, want the other %d unaltered", what, len(got), len(less))
	}
	if pl.finalMark {
		return // it promises nothing of its own, so its loss is like a torn tail
	}
	if len(damage) != 1 {
		t.Fatalf("%s: damage %v", what, damage)
	}
	d := &damage[0]
	if d.File != pl.file || d.Pos != pl.pos || d.End < pl.end || d.FirstLSN != pl.lsn || d.LastLSN != pl.lsn {
		t.Fatalf("%s: reported as %v", what, d)
	}
	if d.Complete != headRight || headRight && !slices.Equal(d.Partitions(), pl.parts) {
		t.Fatalf("%s: partitions %v reported (complete: %v), want %v", what, d.Partitions(), d.Complete, pl.parts)
	}
}

func TestDamagedFileHeaderLosesNothing(t *testing.T) {
	mem := writeJournal(t)
	want, _ := readAll(t, mem.Crash(1))
	seen := make(map[string]bool)
	for _, pl := range places(t, mem) {
		if seen[pl.path] {
			continue
		}
		seen[pl.path] = true
		for _, pos := range []int64{0, 7, 9, 11, 16, 23, 24, 31, 32, 39, 40, 2000, format.HeaderSize - 1} {
			got, damage := readAll(t, change(t, mem, pl.path, pos, 1, func(b []byte) { b[0] ^= 4 }))
			if !maps.Equal(got, want) {
				t.Fatalf("%s byte %d: %d frames of %d replayed", pl.path, pos, len(got), len(want))
			}
			if len(damage) != 1 || damage[0].File != pl.file || damage[0].Pos != 0 || !damage[0].Complete {
				t.Fatalf("%s byte %d: damage %v", pl.path, pos, damage)
			}
		}
	}
}

// TestLargeDamage wipes out runs of bytes: several frames, a file's start, end or
// all of it.
func TestLargeDamage(t *testing.T) {
	mem := writeJournal(t)
	want, _ := readAll(t, mem.Crash(1))
	all := places(t, mem)
	rng := rand.New(rand.NewPCG(3, 3))
	for round := range 300 {
		i := rng.IntN(len(all) - 1)
		k := i
		for k+1 < len(all)-1 && all[k+1].path == all[i].path && rng.IntN(4) > 0 {
			k++
		}
		from, to := all[i].pos, all[k].end
		if rng.IntN(5) == 0 {
			from, i = 0, slices.IndexFunc(all, func(p place) bool { return p.path == all[i].path })
		}
		wipe := func(b []byte) { clear(b) }
		if rng.IntN(2) == 0 {
			wipe = func(b []byte) {
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
			}
		}
		got, damage := readAll(t, change(t, mem, all[i].path, from, to-from, wipe))
		for _, pl := range all[:len(all)-1] {
			lost := pl.path == all[i].path && pl.pos >= from && pl.pos < to
			if _, replayed := got[pl.lsn]; !lost && got[pl.lsn] != want[pl.lsn] || lost && replayed {
				t.Fatalf("round %d: LSN %d (lost: %v) replayed: %v", round, pl.lsn, lost, replayed)
			}
			named := slices.ContainsFunc(damage, func(d Damage) bool { return d.FirstLSN <= pl.lsn && pl.lsn <= d.LastLSN })
			if named != lost {
				t.Fatalf("round %d: %s bytes %d to %d wiped, LSN %d lost: %v, named: %v\n%v", round, all[i].path, from, to, pl.lsn, lost, named, damage)
			}
		}
	}
}

// TestMissingFile removes whole files.
func TestMissingFile(t *testing.T) {
	mem := writeJournal(t)
	all := places(t, mem)
	var paths []string
	for _, pl := range all {
		paths = append(paths, pl.path)
	}
	paths = slices.Compact(paths)
	for _, p := range paths[:len(paths)-1] {
		c := mem.Crash(1)
		if err := c.Remove(p); err != nil {
			t.Fatal(err)
		}
		got, damage := readAll(t, c)
		for _, pl := range all[:len(all)-1] {
			_, replayed := got[pl.lsn]
			named := slices.ContainsFunc(damage, func(d Damage) bool { return d.FirstLSN <= pl.lsn && pl.lsn <= d.LastLSN })
			if lost := pl.path == p; len(pl.parts) > 0 && replayed == lost || named != lost {
				t.Fatalf("without %s: LSN %d replayed: %v, named: %v, damage %v", p, pl.lsn, replayed, named, damage)
			}
		}
	}
}

// TestDamagedFileIsSetAside: recycling must not destroy what may be salvaged.
func TestDamagedFileIsSetAside(t *testing.T) {
	mem := writeJournal(t)
	pl := places(t, mem)[2]
	c := change(t, mem, pl.path, pl.pos+8, 1, func(b []byte) { b[0]++ })
	id := model.FileID(1 << 20)
	var sealed []Sealed
	j, err := Open(context.Background(), Options{
		FS: c, Dir: "d", FileSize: 16 << 10, NextFileID: func() model.FileID { id++; return id },
		OnSeal: func(s Sealed) { sealed = append(sealed, s) },
	}, 1, func(storage.Located) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sealed {
		if err := j.Recycle(s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.String(), strings.TrimSuffix(pl.path, format.ExtData)+format.ExtDamaged) {
		t.Fatalf("the damaged file is gone:\n%v", c)
	}
}
