//go:build unix

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Env says where things are. Immutable after NewEnv.
type Env struct {
	Tree  string // the work tree's root
	Cache string // downloads and installs, kept between runs
	Run   string // logs, data and scratch copies of this run; emptied at start

	lock *os.File // held until the process ends
}

// NewEnv finds the tree from the working directory and makes the cache folder.
func NewEnv(cache string) (*Env, error) {
	tree, err := findTree()
	if err != nil {
		return nil, err
	}
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("no home folder; set DAYBOOK_COMPAT_DIR: %w", err)
		}
		cache = filepath.Join(home, ".cache", "daybook-compat")
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, err
	}
	e := &Env{Tree: tree, Cache: cache, Run: filepath.Join(cache, "run")}
	if err := os.MkdirAll(e.Cache, 0o755); err != nil {
		return nil, err
	}
	return e, nil
}

// Clean empties the run folder. One run at a time may use a cache folder: the others wait.
func (e *Env) Clean() error {
	lock, err := os.OpenFile(filepath.Join(e.Cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Printf("waiting for another run in %s; set DAYBOOK_COMPAT_DIR to run beside it\n", e.Cache)
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			return err
		}
	}
	e.lock = lock
	if err := os.RemoveAll(e.Run); err != nil {
		return err
	}
	return os.MkdirAll(e.Run, 0o755)
}

// Client is the folder of one language's client programs.
func (e *Env) Client(name string) string {
	return filepath.Join(e.Tree, "test", "compat", "clients", name)
}

// Exceptions is the path of one list of expected exceptions.
func (e *Env) Exceptions(name string) string {
	return filepath.Join(e.Tree, "test", "compat", "exceptions", name)
}

func findTree() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "compat", "run")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("run this inside a Daybook tree")
		}
		dir = up
	}
}
