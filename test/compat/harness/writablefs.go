//go:build unix

package harness

import (
	"io/fs"
	"os"
)

// writableFS is the folder dir with every mode made writable, so that os.CopyFS leaves a
// tree that go test can work in. The module cache's own files are read-only.
func writableFS(dir string) fs.FS { return modeFS{os.DirFS(dir)} }

type modeFS struct{ fs.FS }

func (m modeFS) Open(name string) (fs.File, error) {
	f, err := m.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return modeFile{f}, nil
}

type modeFile struct{ fs.File }

func (m modeFile) Stat() (fs.FileInfo, error) {
	info, err := m.File.Stat()
	if err != nil {
		return nil, err
	}
	return modeInfo{info}, nil
}

// ReadDir lets os.CopyFS walk.
func (m modeFile) ReadDir(n int) ([]fs.DirEntry, error) {
	d, ok := m.File.(fs.ReadDirFile)
	if !ok {
		return nil, fs.ErrInvalid
	}
	return d.ReadDir(n)
}

type modeInfo struct{ fs.FileInfo }

func (m modeInfo) Mode() fs.FileMode { return m.FileInfo.Mode() | 0o200 }
