package inspect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

var allParts = []model.PartitionID{part(1, 0), part(1, 1), part(2, 0), part(3, 0)}

// content reads every partition from start to end and gives the batches by
// partition and offset. An error of reading ends the test unless it is skipped over.
func content(t *testing.T, fs vfs.FS, what string) map[string]string {
	t.Helper()
	s := openStore(t, fs, new(clock))
	defer func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	got := make(map[string]string)
	for _, id := range allParts {
		l := s.Log(id)
		for from := l.Start(); from < l.End(); {
			c, err := l.Read(context.Background(), from, l.End(), 1<<20, true)
			if err != nil {
				t.Fatalf("%s: reading %v at %d of %d to %d: %v", what, id, from, l.Start(), l.End(), err)
			}
			for _, data := range c.Data {
				for len(data) > 0 {
					b, rest, err := model.NextBatch(data)
					if err != nil || !b.ValidCRC() {
						t.Fatalf("%s: a bad batch of %v at %d: %v", what, id, from, err)
					}
					got[fmt.Sprintf("%v %d", id, b.BaseOffset())] = string(b)
					data = rest
				}
			}
			if c.Next <= from {
				t.Fatalf("%s: reading %v does not move on from %d", what, id, from)
			}
			from = c.Next
		}
		got[fmt.Sprintf("%v end", id)] = fmt.Sprint(l.End())
	}
	return got
}

// repaired runs Repair and demands that nothing is left to find, that every log
// reads through, and that all that is read was written. It gives what is lost.
func repaired(t *testing.T, fs *vfs.Mem, what string, want map[string]string) (lost []string) {
	t.Helper()
	before, err := fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Repair(context.Background(), inspectDir(t, fs), true)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if after, _ := fs.List(testDir); !slices.Equal(before, after) {
		t.Fatalf("%s: a dry run has changed files", what)
	}
	done, err := Repair(context.Background(), inspectDir(t, fs), false)
	if err != nil || len(done) != len(plan) || len(done) == 0 {
		t.Fatalf("%s: %v done, %v planned, %v", what, done, plan, err)
	}
	for _, a := range done {
		if a.Kept == "" || a.Text() == "" {
			t.Fatalf("%s: %s replaces a file and keeps nothing", what, a.Text())
		}
		if _, err := fs.Size(path.Join(testDir, a.Kept)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if r := verifyOnce(t, fs); slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Damage && f.Kind != KindIndex }) {
		t.Fatalf("%s: after the repair\n%s\nthere is\n%s", what, done[0].Text(), texts(r.Findings))
	}
	got := content(t, fs, what)
	for k, v := range got {
		// Where the journal's very end is gone, nothing tells how far a log went.
		if want[k] != v && !strings.HasSuffix(k, " end") {
			t.Fatalf("%s: %s was not written so: %d bytes, %d were written\n%s", what, k, len(v), len(want[k]), texts(verifyOnce(t, fs).Findings))
		}
	}
	for k := range want {
		if _, ok := got[k]; !ok {
			lost = append(lost, k)
		}
	}
	return lost
}

func TestRepairFlips(t *testing.T) {
	mem := fill(t)
	want := content(t, mem.Crash(1), "sound")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range verifyOnce(t, mem).scans {
		for range 2 {
			pos := rng.Int64N(c.end - format.MarkSize)
			what := fmt.Sprintf("%s %s byte %d", c.file.Role, c.file.Name, pos)
			damaged := mem.Crash(1)
			edit(t, damaged, c.file.Name, pos, 1, func(b []byte) { b[0] ^= 64 })
			if r := verifyOnce(t, damaged); !r.Damaged() {
				t.Fatalf("%s: not found", what)
			}
			lost := repaired(t, damaged, what, want)
			if len(lost) > 0 {
				t.Fatalf("%s: %d batches lost with one bit", what, len(lost))
			}
		}
	}
}

// TestRepairSalvages: of a frame with damaged bytes only the batch that holds them
// is lost.
func TestRepairSalvages(t *testing.T) {
	mem := fill(t)
	want := content(t, mem.Crash(1), "sound")
	// The newest segment, and a log that was not trimmed.
	c := slices.DeleteFunc(verifyOnce(t, mem).scans, func(c *scan) bool { return c.file.Role != RoleSegment })
	i := len(c) - 1
	s := c[i].spans[slices.IndexFunc(c[i].spans, func(s span) bool { return s.part != part(1, 1) })]
	damaged := mem.Crash(1)
	edit(t, damaged, c[i].file.Name, s.pos+model.BatchHeaderSize+3, 9, func(b []byte) { clear(b); b[4] = 0xFF })
	lost := repaired(t, damaged, "segment", want)
	if len(lost) != 1 || !strings.HasPrefix(lost[0], s.part.String()) {
		t.Fatalf("lost %v, want one batch of %v", lost, s.part)
	}
}

// TestRepairWipes: several frames of a file are gone, at any place.
func TestRepairWipes(t *testing.T) {
	mem := fill(t)
	want := content(t, mem.Crash(1), "sound")
	rng := rand.New(rand.NewPCG(5, 6))
	scans := verifyOnce(t, mem).scans
	for round := range 60 {
		c := scans[rng.IntN(len(scans))]
		from := rng.Int64N(c.end - format.MarkSize)
		n := min(1+rng.Int64N(60_000), c.end-format.MarkSize-from)
		if round%4 == 0 { // to the file's end
			n = c.end - from
		}
		what := fmt.Sprintf("round %d: %s %s bytes %d to %d of %d", round, c.file.Role, c.file.Name, from, from+n, c.end)
		damaged := mem.Crash(1)
		edit(t, damaged, c.file.Name, from, n, func(b []byte) {
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
		})
		r := verifyOnce(t, damaged)
		if c.file.Role == RoleJournal && from+n >= c.end-format.MarkSize &&
			!slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Damage && f.Kind != KindHole }) {
			continue // like a torn tail; at most the checkpoint knows that there was more
		}
		if !r.Damaged() {
			t.Fatalf("%s: not found", what)
		}
		repaired(t, damaged, what, want)
	}
}

func TestRepairCutSegment(t *testing.T) {
	mem := fill(t)
	want := content(t, mem.Crash(1), "sound")
	for _, f := range inspectDir(t, mem).Files {
		if f.Role != RoleSegment && f.Role != RoleAdopted {
			continue
		}
		damaged := mem.Crash(1)
		file, err := damaged.OpenRW(path.Join(testDir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Truncate(f.Size/2), file.Sync(), file.Close()); err != nil {
			t.Fatal(err)
		}
		if lost := repaired(t, damaged, f.Name+" cut", want); len(lost) == 0 {
			t.Fatal("nothing is lost of half a file")
		}
	}
}

func TestRepairIndexAndCheckpoint(t *testing.T) {
	mem := fill(t)
	want := content(t, mem.Crash(1), "sound")
	names, err := mem.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, format.ExtIndex) && name != checkpoint.Names[0] {
			continue
		}
		damaged := mem.Crash(1)
		edit(t, damaged, name, 40, 1, func(b []byte) { b[0] ^= 2 })
		if lost := repaired(t, damaged, name, want); len(lost) > 0 {
			t.Fatalf("%s: lost %v", name, lost)
		}
	}
}

func TestRepairWantsTheLock(t *testing.T) {
	mem := fill(t)
	s := openStore(t, mem, new(clock))
	if _, err := Repair(context.Background(), inspectDir(t, mem), false); !errors.Is(err, vfs.ErrLocked) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if done, err := Repair(context.Background(), inspectDir(t, mem), false); err != nil || len(done) > 0 {
		t.Fatalf("%v, %v", done, err)
	}
}

// TestRepairIsInterrupted: a crash at any step leaves what a second run finishes.
func TestRepairIsInterrupted(t *testing.T) {
	mem := fill(t)
	want := content(t, mem.Crash(1), "sound")
	c := verifyOnce(t, mem).scans
	i := slices.IndexFunc(c, func(c *scan) bool { return c.file.Role == RoleAdopted })
	damaged := mem.Crash(1)
	edit(t, damaged, c[i].file.Name, c[i].spans[3].pos+100, 1, func(b []byte) { b[0]++ })
	for step := 1; ; step++ {
		live := damaged.Crash(1)
		fault := vfs.NewFault(live)
		left := step
		var crashed *vfs.Mem
		fault.Watch = func(op vfs.Op, _ string) {
			if op == vfs.OpRead || op == vfs.OpOpen {
				return
			}
			if left--; left == 0 {
				crashed = live.Crash(uint64(step))
			}
		}
		if _, err := Repair(context.Background(), inspectDir(t, fault), false); err != nil {
			t.Fatal(err)
		}
		if crashed == nil {
			if step < 6 {
				t.Fatalf("the repair has only %d steps", step)
			}
			return
		}
		if _, err := Repair(context.Background(), inspectDir(t, crashed), false); err != nil {
			t.Fatalf("step %d: %v\n%v", step, err, crashed)
		}
		got := content(t, crashed, fmt.Sprintf("step %d", step))
		if missing := len(want) - len(got); missing > 1 {
			t.Fatalf("step %d: %d batches lost", step, missing)
		}
	}
}
