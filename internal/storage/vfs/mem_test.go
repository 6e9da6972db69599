package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// read gives a file's content; "" if there is no such file.
func read(t *testing.T, f FS, name string) string {
	t.Helper()
	file, err := f.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	ok(t, err)
	b := make([]byte, must[int64](t)(file.Size()))
	if _, err := file.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outcomes crashes m many times and gives the different contents of a file.
func outcomes(t *testing.T, m *Mem, name string) map[string]int {
	t.Helper()
	seen := make(map[string]int)
	for seed := range uint64(300) {
		seen[read(t, m.Crash(seed), name)]++
	}
	return seen
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := NewMem(0)
	file := must[File](t)(m.Create("f"))
	must[int](t)(file.WriteAt([]byte("synced"), 0))
	ok(t, file.SyncData())
	ok(t, m.SyncDir("."))
	if seen := outcomes(t, m, "f"); seen["synced"] != 300 {
		t.Fatalf("after crashes: %v", seen)
	}
}

func TestCrashMayLoseUnsyncedNames(t *testing.T) {
	m := NewMem(0)
	file := must[File](t)(m.Create("f"))
	must[int](t)(file.WriteAt([]byte("x"), 0))
	ok(t, file.Sync())
	if seen := outcomes(t, m, "f"); seen[""] == 0 || seen["x"] == 0 || len(seen) != 2 {
		t.Fatalf("a created name after crashes: %v", seen)
	}
	ok(t, m.SyncDir("."))
	ok(t, m.Rename("f", "g"))
	for seed := range uint64(300) {
		c := m.Crash(seed)
		if (read(t, c, "f") == "x") == (read(t, c, "g") == "x") {
			t.Fatalf("seed %d: a rename is not atomic:\n%v", seed, c)
		}
	}
	ok(t, m.SyncDir("."))
	ok(t, m.Remove("g"))
	if seen := outcomes(t, m, "g"); seen[""] == 0 || seen["x"] == 0 || len(seen) != 2 {
		t.Fatalf("a removed name after crashes: %v", seen)
	}
}

func TestCrashTearsAtSectors(t *testing.T) {
	m := NewMem(0)
	file := must[File](t)(m.Create("f"))
	must[int](t)(file.WriteAt(bytes.Repeat([]byte("a"), 2048), 0))
	ok(t, file.Sync())
	ok(t, m.SyncDir("."))
	must[int](t)(file.WriteAt(bytes.Repeat([]byte("b"), 1536), 256))
	seen := outcomes(t, m, "f")
	torn := 0
	for content := range seen {
		if len(content) != 2048 {
			t.Fatalf("a file of %d bytes", len(content))
		}
		changes := 0
		for i := 1; i < len(content); i++ {
			if content[i] != content[i-1] {
				if changes++; i != 256 && i != 1792 && i%memSector != 0 {
					t.Fatalf("torn at %d", i)
				}
			}
		}
		if changes > 2 {
			torn++
		}
	}
	if torn == 0 || len(seen) < 5 {
		t.Fatalf("%d different outcomes, %d torn", len(seen), torn)
	}
	if got := read(t, m, "f"); got[256:1792] != string(bytes.Repeat([]byte("b"), 1536)) {
		t.Fatal("the live file system was changed by crashes")
	}
}

func TestCrashOfTruncation(t *testing.T) {
	m := NewMem(0)
	file := must[File](t)(m.Create("f"))
	must[int](t)(file.WriteAt([]byte("abcdef"), 0))
	ok(t, file.Sync())
	ok(t, m.SyncDir("."))
	ok(t, file.Truncate(2))
	if seen := outcomes(t, m, "f"); seen["ab"] == 0 || seen["abcdef"] == 0 || len(seen) != 2 {
		t.Fatalf("after crashes: %v", seen)
	}
	ok(t, file.Sync())
	must[int](t)(file.WriteAt([]byte("z"), 3))
	if seen := outcomes(t, m, "f"); seen["ab"] == 0 || seen["ab\x00z"] == 0 || len(seen) != 2 {
		t.Fatalf("after crashes: %v", seen)
	}
}

func TestMemIsFull(t *testing.T) {
	m := NewMem(10000)
	file := must[File](t)(m.Create("f"))
	ok(t, file.Allocate(0, 8000))
	other := must[File](t)(m.Create("g"))
	_, err := other.WriteAt(make([]byte, 3000), 0)
	isErr(t, err, syscall.ENOSPC)
	if !IsNoSpace(err) {
		t.Fatal("IsNoSpace does not know ENOSPC")
	}
	isErr(t, other.Allocate(0, 3000), syscall.ENOSPC)
	must[int](t)(file.WriteAt(make([]byte, 8000), 0)) // reserved before
	ok(t, m.Remove("f"))
	must[int](t)(other.WriteAt(make([]byte, 3000), 0))
	if sp := must[Space](t)(m.Space(".")); sp.Free != 7000 || sp.Total != 10000 {
		t.Fatalf("space %+v", sp)
	}
}

func TestFaults(t *testing.T) {
	m := NewMem(0)
	f := NewFault(m)
	f.Inject(Rule{Op: OpSync, Name: "*.x", After: 1, Times: 1, Err: syscall.EIO})
	f.Inject(Rule{Op: OpWrite, Name: "f.x", After: 1, Times: 1, Err: syscall.EIO})
	file := must[File](t)(f.Create("f.x"))
	other := must[File](t)(f.Create("f.y"))
	ok(t, file.SyncData())
	ok(t, other.SyncData())
	isErr(t, file.SyncData(), syscall.EIO)
	ok(t, file.SyncData())
	must[int](t)(file.WriteAt([]byte("ab"), 0))
	n, err := file.WriteVec([][]byte{[]byte("c"), []byte("d")}, 0)
	isErr(t, err, syscall.EIO)
	if n != 1 || read(t, m, "f.x") != "cb" {
		t.Fatalf("a failed write wrote %d: %q", n, read(t, m, "f.x"))
	}
	f.Inject(Rule{Op: OpRead, Times: 1, Flip: 1})
	if got := read(t, f, "f.x"); got != "cc" {
		t.Fatalf("read %q", got)
	}
	if got := read(t, f, "f.x"); got != "cb" {
		t.Fatalf("read %q", got)
	}
	ok(t, file.SyncData())
	f.Inject(Rule{Op: OpSyncDir})
	ok(t, f.SyncDir("."))
	if seen := outcomes(t, m, "f.x"); seen[""] == 0 {
		t.Fatalf("a skipped sync of the directory loses nothing: %v", seen)
	}
	f.Heal()
	ok(t, f.SyncDir("."))
	if seen := outcomes(t, m, "f.x"); seen[""] != 0 {
		t.Fatalf("after crashes: %v", seen)
	}
	if f.Seen(OpSyncDir) != 2 {
		t.Fatalf("%d directory syncs seen", f.Seen(OpSyncDir))
	}
}
