package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Names in a data directory that the doctor knows.
const (
	lockName = "LOCK"
	metaName = "meta.json"
)

// exists reports whether the data directory is there; at a first start it is not.
func (e *exam) exists() bool {
	info, err := os.Stat(e.o.Data)
	return err == nil && info.IsDir()
}

// base is the data directory, or the nearest folder above it that exists.
func (e *exam) base() string {
	dir, err := filepath.Abs(e.o.Data)
	if err != nil {
		return "."
	}
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

func (e *exam) directory(context.Context) {
	const check = "data directory"
	remedy := "name another one with `daybook serve --data DIR`, or give the broker's user the right to write here"
	info, err := os.Stat(e.o.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := tryWrite(e.base()); err != nil {
			e.add(check, Fail, remedy, "%s does not exist and cannot be made: %v", e.o.Data, err)
			return
		}
		e.add(check, OK, "", "%s does not exist yet; the first start makes it", e.o.Data)
	case err != nil:
		e.add(check, Fail, remedy, "%v", err)
	case !info.IsDir():
		e.add(check, Fail, "name a directory with `daybook serve --data DIR`", "%s is a file", e.o.Data)
	default:
		if err := tryWrite(e.o.Data); err != nil {
			e.add(check, Fail, remedy, "%s cannot be written: %v", e.o.Data, err)
			return
		}
		e.add(check, OK, "", "%s can be written", e.o.Data)
	}
}

func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".daybook-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// lock tells whether a process holds the directory.
func (e *exam) lock(context.Context) {
	const check = "lock"
	name := filepath.Join(e.o.Data, lockName)
	if _, err := os.Stat(name); err != nil {
		if e.exists() {
			e.add(check, OK, "", "no process has used the directory yet")
		}
		return
	}
	held, err := vfs.OS{}.Lock(filepath.ToSlash(name))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		e.inUse = true
		e.add(check, OK, "", "a running broker holds the directory")
	case err != nil:
		e.add(check, Fail, "give the broker's user the right to write here", "%s cannot be locked: %v", name, err)
	default:
		_ = held.Close() // it was only tried
		e.add(check, OK, "", "free: no broker runs on the directory")
	}
}

// format looks at the versions of the directory and of each data file.
func (e *exam) format(context.Context) {
	const check = "format"
	if !e.exists() {
		return
	}
	if !e.directoryFormat(check) {
		return
	}
	names, err := filepath.Glob(filepath.Join(e.o.Data, "*"+format.ExtData))
	if err != nil {
		e.add(check, Fail, "", "%v", err)
		return
	}
	var bad []string
	newer := false
	for _, name := range names {
		err := headerError(name)
		newer = newer || errors.Is(err, format.ErrVersion)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a live broker removes files
			bad = append(bad, fmt.Sprintf("%s (%v)", filepath.Base(name), err))
		}
	}
	damaged, _ := filepath.Glob(filepath.Join(e.o.Data, "*"+format.ExtDamaged))
	switch {
	case newer:
		e.add(check, Fail, "start it with the newer Daybook that wrote it", "%s", some(bad))
	case len(bad) > 0:
		e.add(check, Fail, fmt.Sprintf("`daybook log verify %s` says what is damaged", e.o.Data), "%s", some(bad))
	case len(damaged) > 0:
		e.add(check, Warn, fmt.Sprintf("`daybook log verify %s` says which records are gone", e.o.Data), "%d damaged files were set aside", len(damaged))
	default:
		e.add(check, OK, "", "version %d, %d data files", format.Version, len(names))
	}
}

func (e *exam) directoryFormat(check string) bool {
	data, err := os.ReadFile(filepath.Join(e.o.Data, metaName))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var meta struct {
		Format int `json:"format"`
	}
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	switch {
	case err != nil:
		e.add(check, Fail, "bring the file back from a backup; it names the directory's format and cluster", "%s: %v", metaName, err)
	case meta.Format > e.o.Format:
		e.add(check, Fail, "start it with the newer Daybook that wrote it", "the directory has format %d, this Daybook reads %d", meta.Format, e.o.Format)
	case meta.Format < e.o.Format:
		e.add(check, Fail, "start it with the older Daybook that wrote it", "the directory has format %d, this Daybook reads %d", meta.Format, e.o.Format)
	default:
		return true
	}
	return false
}

func headerError(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, format.HeaderSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return fmt.Errorf("no whole header: %w", err)
	}
	if bytes.Count(head, []byte{0}) == len(head) {
		return nil // made ahead by the journal, and not in use yet
	}
	_, err = format.DecodeFileHeader(head)
	return err
}

// some lists the first few of a long list.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
