package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"testing"
)

// implementations are the file systems that must behave alike.
func implementations(t *testing.T) map[string]func(t *testing.T) (FS, string) {
	t.Helper()
	return map[string]func(t *testing.T) (FS, string){
		"os":    func(t *testing.T) (FS, string) { return OS{}, t.TempDir() },
		"mem":   func(*testing.T) (FS, string) { return NewMem(0), "/" },
		"fault": func(*testing.T) (FS, string) { return NewFault(NewMem(0)), "." },
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func TestConformance(t *testing.T) {
	cases := map[string]func(t *testing.T, f FS, dir string){
		"names":     testNames,
		"content":   testContent,
		"vectors":   testVectors,
		"allocate":  testAllocate,
		"read-only": testReadOnly,
		"lock":      testLock,
		"space":     testSpace,
	}
	for impl, make := range implementations(t) {
		for name, test := range cases {
			t.Run(impl+"/"+name, func(t *testing.T) {
				f, dir := make(t)
				test(t, f, dir)
			})
		}
	}
}

func testNames(t *testing.T, f FS, dir string) {
	sub := path.Join(dir, "a", "b")
	_, err := f.Create(path.Join(sub, "x"))
	isErr(t, err, fs.ErrNotExist)
	ok(t, f.MkdirAll(sub))
	ok(t, f.MkdirAll(sub))
	_, err = f.Open(path.Join(sub, "x"))
	isErr(t, err, fs.ErrNotExist)
	_, err = f.OpenRW(path.Join(sub, "x"))
	isErr(t, err, fs.ErrNotExist)
	_, err = f.Size(path.Join(sub, "x"))
	isErr(t, err, fs.ErrNotExist)
	isErr(t, f.Remove(path.Join(sub, "x")), fs.ErrNotExist)
	isErr(t, f.Rename(path.Join(sub, "x"), path.Join(sub, "y")), fs.ErrNotExist)
	_, err = f.List(path.Join(dir, "none"))
	isErr(t, err, fs.ErrNotExist)

	for i, name := range []string{"x", "w"} {
		file := must[File](t)(f.Create(path.Join(sub, name)))
		must[int](t)(file.WriteAt([]byte(name), int64(i)))
		ok(t, file.Close())
	}
	_, err = f.Create(path.Join(sub, "x"))
	isErr(t, err, fs.ErrExist)
	if got := must[[]string](t)(f.List(sub)); !slices.Equal(got, []string{"w", "x"}) {
		t.Fatalf("list %v", got)
	}
	if got := must[[]string](t)(f.List(dir)); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("list %v", got)
	}
	ok(t, f.Rename(path.Join(sub, "x"), path.Join(sub, "w")))
	if got := must[int64](t)(f.Size(path.Join(sub, "w"))); got != 1 {
		t.Fatalf("size %d after the rename", got)
	}
	ok(t, f.Rename(path.Join(sub, "w"), path.Join(dir, "z")))
	ok(t, f.SyncDir(sub))
	ok(t, f.SyncDir(dir))
	ok(t, f.Remove(path.Join(dir, "z")))
	if got := must[[]string](t)(f.List(sub)); len(got) != 0 {
		t.Fatalf("list %v", got)
	}
	if err := f.MkdirAll(path.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
}

func testContent(t *testing.T, f FS, dir string) {
	name := path.Join(dir, "f")
	file := must[File](t)(f.Create(name))
	must[int](t)(file.WriteAt([]byte("hello"), 5000))
	b := make([]byte, 8)
	n, err := file.ReadAt(b, 4999)
	if n != 6 || err != io.EOF || string(b[:n]) != "\x00hello" {
		t.Fatalf("read %q, %v", b[:n], err)
	}
	if n, err := file.ReadAt(b, 6000); n != 0 || err != io.EOF {
		t.Fatalf("read %d beyond the end, %v", n, err)
	}
	if n, err := file.ReadAt(b[:5], 5000); n != 5 || err != nil && err != io.EOF {
		t.Fatalf("read %d, %v", n, err)
	}
	ok(t, file.Truncate(5002))
	ok(t, file.Truncate(5008))
	n, err = file.ReadAt(b, 5000)
	if n != 8 || err != nil && err != io.EOF || string(b) != "he\x00\x00\x00\x00\x00\x00" {
		t.Fatalf("read %q after truncation, %v", b, err)
	}
	ok(t, file.SyncData())
	ok(t, file.Sync())
	ok(t, file.Close())
	if file.Close() == nil {
		t.Fatal("a second close succeeds")
	}
	if _, err := file.ReadAt(b, 0); err == nil {
		t.Fatal("a closed file can be read")
	}
	other := must[File](t)(f.OpenRW(name))
	must[int](t)(other.WriteAt([]byte("J"), 5000))
	reader := must[File](t)(f.Open(name))
	must[int](t)(reader.ReadAt(b[:2], 5000))
	if string(b[:2]) != "Je" {
		t.Fatalf("another handle reads %q", b[:2])
	}
	ok(t, f.Remove(name))
	must[int](t)(reader.ReadAt(b[:2], 5000)) // who has it open keeps it
	ok(t, reader.Close())
	ok(t, other.Close())
}

func testVectors(t *testing.T, f FS, dir string) {
	file := must[File](t)(f.Create(path.Join(dir, "f")))
	defer file.Close()
	var bufs [][]byte
	var want []byte
	for i := range 3000 {
		b := bytes.Repeat([]byte{byte(i)}, i%7)
		bufs = append(bufs, b)
		want = append(want, b...)
	}
	n := must[int64](t)(file.WriteVec(bufs, 100))
	if n != int64(len(want)) {
		t.Fatalf("wrote %d of %d", n, len(want))
	}
	got := make([]byte, len(want))
	must[int](t)(file.ReadAt(got, 100))
	if !bytes.Equal(got, want) {
		t.Fatal("other bytes were read than written")
	}
	if n := must[int64](t)(file.WriteVec(nil, 0)); n != 0 {
		t.Fatalf("wrote %d of nothing", n)
	}
	if n := must[int64](t)(file.WriteVec([][]byte{nil, {}}, 0)); n != 0 {
		t.Fatalf("wrote %d of nothing", n)
	}
}

func testAllocate(t *testing.T, f FS, dir string) {
	file := must[File](t)(f.Create(path.Join(dir, "f")))
	defer file.Close()
	must[int](t)(file.WriteAt([]byte("abc"), 0))
	ok(t, file.Allocate(0, 1<<20))
	if got := must[int64](t)(file.Size()); got != 1<<20 {
		t.Fatalf("size %d", got)
	}
	b := []byte{1, 1, 1, 1}
	must[int](t)(file.ReadAt(b, 1))
	if string(b) != "bc\x00\x00" {
		t.Fatalf("read %q", b)
	}
	ok(t, file.Allocate(0, 10))
	if got := must[int64](t)(file.Size()); got != 1<<20 {
		t.Fatalf("size %d after allocating what is there", got)
	}
}

func testReadOnly(t *testing.T, f FS, dir string) {
	name := path.Join(dir, "f")
	ok(t, must[File](t)(f.Create(name)).Close())
	file := must[File](t)(f.Open(name))
	defer file.Close()
	if _, err := file.WriteAt([]byte("x"), 0); err == nil {
		t.Fatal("a file opened for reading can be written")
	}
}

func testLock(t *testing.T, f FS, dir string) {
	name := path.Join(dir, "LOCK")
	l := must[io.Closer](t)(f.Lock(name))
	_, err := f.Lock(name)
	isErr(t, err, ErrLocked)
	ok(t, l.Close())
	ok(t, must[io.Closer](t)(f.Lock(name)).Close())
}

func testSpace(t *testing.T, f FS, dir string) {
	sp := must[Space](t)(f.Space(dir))
	if sp.Total == 0 || sp.Free > sp.Total {
		t.Fatalf("space %+v", sp)
	}
}
