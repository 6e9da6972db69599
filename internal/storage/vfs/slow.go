package vfs

import "time"

// Slow is a file system whose syncs take time, so that there is something under
// way when a test wants it to be.
type Slow struct {
	FS
	delay func() time.Duration
}

// NewSlow wraps fs; every sync of a file takes delay() longer.
func NewSlow(fs FS, delay func() time.Duration) *Slow { return &Slow{fs, delay} }

// Create is FS.Create.
func (s *Slow) Create(name string) (File, error) { return s.wrap(s.FS.Create(name)) }

// OpenRW is FS.OpenRW.
func (s *Slow) OpenRW(name string) (File, error) { return s.wrap(s.FS.OpenRW(name)) }

func (s *Slow) wrap(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &slowFile{f, s.delay}, nil
}

type slowFile struct {
	File
	delay func() time.Duration
}

func (f *slowFile) SyncData() error {
	time.Sleep(f.delay())
	return f.File.SyncData()
}

func (f *slowFile) Sync() error {
	time.Sleep(f.delay())
	return f.File.Sync()
}

var _ FS = (*Slow)(nil)
