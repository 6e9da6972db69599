package partlog

import "github.com/daybook-mq/daybook/internal/storage/vfs"

// hookFS calls hook before each operation that decides what a crash leaves, with
// the name that it changes ("" for an open file).
type hookFS struct {
	vfs.FS
	hook func(name string)
}

func (h hookFS) Create(name string) (vfs.File, error) {
	h.hook(name)
	f, err := h.FS.Create(name)
	return hookFile{f, h.hook}, err
}

func (h hookFS) OpenRW(name string) (vfs.File, error) {
	f, err := h.FS.OpenRW(name)
	return hookFile{f, h.hook}, err
}

func (h hookFS) Remove(name string) error { h.hook(name); return h.FS.Remove(name) }

func (h hookFS) Rename(o, n string) error { h.hook(n); return h.FS.Rename(o, n) }

func (h hookFS) SyncDir(dir string) error { h.hook(dir); return h.FS.SyncDir(dir) }

type hookFile struct {
	vfs.File
	hook func(name string)
}

func (f hookFile) Truncate(n int64) error { f.hook(""); return f.File.Truncate(n) }

func (f hookFile) Sync() error { f.hook(""); return f.File.Sync() }

func (f hookFile) SyncData() error { f.hook(""); return f.File.SyncData() }
