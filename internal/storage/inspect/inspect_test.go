package inspect

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func TestVerifySound(t *testing.T) {
	mem := fill(t)
	d := inspectDir(t, mem)
	before := mem.String()
	r, err := Verify(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) > 0 {
		t.Fatalf("findings in a sound directory:\n%s", texts(r.Findings))
	}
	if r.Files == 0 || r.Batches < 360 || r.Bytes < 2*30*2*30_000 {
		t.Fatalf("report %+v", r)
	}
	if mem.String() != before {
		t.Fatal("looking has changed files")
	}
}

func texts(all []Finding) string {
	var lines []string
	for i := range all {
		lines = append(lines, all[i].Text())
	}
	return strings.Join(lines, "\n")
}

// TestEveryFlipIsNamed flips bytes in every file that has content.
func TestEveryFlipIsNamed(t *testing.T) {
	mem := fill(t)
	sound := verifyOnce(t, mem)
	dense := make(map[Role]bool)
	for _, c := range sound.scans {
		end, flips := c.end, int64(60)
		if dense[c.file.Role] { // one file of each role is enough
			flips = 2
		}
		dense[c.file.Role] = true
		for pos := int64(0); pos < end; pos += 1 + end/flips {
			flipIsNamed(t, mem, c.file.Name, pos, c.file.Role == RoleJournal && pos >= c.end-format.MarkSize)
		}
	}
	names, err := mem.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, format.ExtIndex) || slices.Contains(checkpoint.Names[:], name) {
			size, err := mem.Size(path.Join(testDir, name))
			if err != nil {
				t.Fatal(err)
			}
			flips := int64(30)
			if dense[Role(path.Ext(name))] {
				flips = 1
			}
			dense[Role(path.Ext(name))] = strings.HasSuffix(name, format.ExtIndex)
			for pos := int64(0); pos < size; pos += 1 + size/flips {
				flipIsNamed(t, mem, name, pos, false)
			}
		}
	}
}

// flipIsNamed demands that exactly the damage at pos is found. Of the journal's
// last mark a loss cannot be told from a torn tail.
func flipIsNamed(t *testing.T, mem *vfs.Mem, name string, pos int64, mark bool) {
	t.Helper()
	c := mem.Crash(1)
	edit(t, c, name, pos, 1, func(b []byte) { b[0] ^= 8 })
	r := verifyOnce(t, c)
	named := false
	for _, f := range r.Findings {
		named = named || f.File == name && (f.End == 0 || f.Pos <= pos && pos < f.End) || f.Kind == KindCheckpoint
		if f.Kind == KindHole || f.Kind == KindMissing {
			named = named || strings.HasPrefix(name, "checkpoint")
		}
	}
	if !named || !mark && !r.Damaged() {
		t.Fatalf("%s byte %d:\n%s", name, pos, texts(r.Findings))
	}
	for _, f := range r.Findings {
		if f.Kind == KindFrame && !f.Unknown && len(f.Partitions) == 0 && f.FirstLSN == 0 {
			t.Fatalf("%s byte %d: nothing is named in\n%s", name, pos, f.Text())
		}
	}
}

func TestVerifyMissingFile(t *testing.T) {
	mem := fill(t)
	for _, f := range inspectDir(t, mem).Files {
		if f.Role == RolePrepared {
			continue
		}
		c := mem.Crash(1)
		if err := c.Remove(path.Join(testDir, f.Name)); err != nil {
			t.Fatal(err)
		}
		r := verifyOnce(t, c)
		if !r.Damaged() && f.Role != RoleJournal {
			t.Fatalf("without %s %s: %s", f.Role, f.Name, texts(r.Findings))
		}
	}
}

// TestVerifyBesideAWriter looks again and again while a store works.
func TestVerifyBesideAWriter(t *testing.T) {
	mem := vfs.NewMem(0)
	s := openStore(t, mem, new(clock))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p := part(1, int32(i%3))
			put(t, s, map[model.PartitionID]model.Batch{p: batch(t, s.Log(p).End(), 2, 500+i%5000)})
		}
	}()
	waitFor(t, "some files", func() bool { return s.Stats().FlushedFiles > 0 })
	for range 25 {
		r, err := Verify(context.Background(), inspectDir(t, mem))
		if err != nil {
			t.Fatal(err)
		}
		if r.Damaged() {
			t.Fatalf("damage beside a live store:\n%s", texts(r.Findings))
		}
	}
	close(stop)
	<-stopped
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDump(t *testing.T) {
	mem := fill(t)
	d := inspectDir(t, mem)
	count := func(o DumpOptions) map[string]int {
		t.Helper()
		n := make(map[string]int)
		if err := d.Dump(context.Background(), o, func(r Row) error {
			b, err := json.Marshal(r)
			if err != nil {
				return err
			}
			var typed struct{ Type string }
			if err := json.Unmarshal(b, &typed); err != nil {
				return err
			}
			if r.Text() == "" || typed.Type == "" {
				t.Fatalf("row %s", b)
			}
			n[typed.Type]++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := count(DumpOptions{Records: true})
	if all["file"] != len(d.Files) || all["batch"] < 360 || all["record"] < 2*all["batch"] || all["bad"] > 1 {
		t.Fatalf("rows %v", all)
	}
	if n := count(DumpOptions{Frames: true}); n["frame"] != all["frame"] || n["entry"] != 0 {
		t.Fatalf("rows %v", n)
	}
	one := count(DumpOptions{Partition: part(3, 0).String(), Batches: true})
	if one["batch"] < 60 || one["entry"] > one["batch"] || one["record"] != 0 {
		t.Fatalf("rows %v", one)
	}
	if n := count(DumpOptions{Files: []string{d.Files[0].Name}}); n["file"] != 1 {
		t.Fatalf("rows %v", n)
	}
	err := d.Dump(context.Background(), DumpOptions{Files: []string{"77777"}}, nil)
	if model.ClassOf(err) != model.ClassNotFound {
		t.Fatal(err)
	}
	if _, err := Open(vfs.NewMem(0), "."); model.ClassOf(err) != model.ClassNotFound {
		t.Fatal(err)
	}
}
