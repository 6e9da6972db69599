package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
)

// Action is one thing that Repair did, or would do.
type Action struct {
	File string `json:"file"`
	What string `json:"what"`
	Kept string `json:"kept,omitempty"` // the name that the file as it was has now
}

// Text is the action in one line.
func (a *Action) Text() string {
	s := a.File + ": " + a.What
	if a.Kept != "" {
		s += "; the file as it was is kept as " + a.Kept
	}
	return s
}

// extRepair is a mended copy that is not yet in its place.
const extRepair = ".repair"

// Repair mends what Verify finds. Data files are written anew: good frames as they
// are, batches that can be read, and in the place of what is lost an entry without
// data, so that readers pass over its offsets. Indexes are set aside, the next
// start builds them again. Everything replaced is kept under another name. With
// dryRun nothing is changed. ErrLocked (vfs) means that a broker runs.
func Repair(ctx context.Context, d *Dir, dryRun bool) ([]Action, error) {
	if !dryRun {
		lock, err := d.fs.Lock(path.Join(d.path, format.LockName))
		if err != nil {
			return nil, err
		}
		defer lock.Close()
		if err := d.finishRepairs(); err != nil {
			return nil, err
		}
	}
	look := Verify
	if !dryRun { // nobody else writes
		look = func(ctx context.Context, d *Dir) (*Report, error) { return d.verify(ctx, make(map[string]*scan)) }
	}
	r, err := look(ctx, d)
	if err != nil {
		return nil, err
	}
	p := plan{d: d, dryRun: dryRun}
	for _, c := range r.scans {
		if err := ctx.Err(); err != nil {
			return p.actions, err
		}
		if err := p.heal(c, r); err != nil {
			return p.actions, fmt.Errorf("%s: %w", c.file.Name, err)
		}
	}
	for _, f := range r.Findings {
		if f.Kind == KindIndex && !p.has(f.File) {
			if err := p.setAside(f.File, "set the index aside; the next start builds it again"); err != nil {
				return p.actions, err
			}
		}
	}
	if len(d.twins) > 0 && !d.lost {
		if err := p.healCheckpoint(); err != nil {
			return p.actions, err
		}
	}
	return p.actions, nil
}

// finishRepairs completes what an interrupted Repair left.
func (d *Dir) finishRepairs() error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		if !ok || ext != extRepair {
			continue
		}
		data := path.Join(d.path, format.FileName(id, format.ExtData))
		if _, err := d.fs.Size(data); errors.Is(err, fs.ErrNotExist) {
			err = d.fs.Rename(path.Join(d.path, name), data)
		} else if err == nil {
			err = d.fs.Remove(path.Join(d.path, name)) // an unfinished copy
		}
		if err != nil {
			return err
		}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return err
	}
	*d = Dir{fs: d.fs, path: d.path, pause: d.pause}
	return d.list()
}

// plan gathers and, unless it is a dry run, carries out the actions.
type plan struct {
	d       *Dir
	dryRun  bool
	actions []Action
}

// has reports whether something is done to the file already.
func (p *plan) has(name string) bool {
	return slices.ContainsFunc(p.actions, func(a Action) bool { return a.File == name })
}

// setAside renames a file to a name that nothing reads.
func (p *plan) setAside(name, what string) error {
	kept := p.freeName(name + ".bad")
	if _, err := p.d.fs.Size(path.Join(p.d.path, name)); errors.Is(err, fs.ErrNotExist) {
		return nil // it is missing already
	}
	p.actions = append(p.actions, Action{name, what, kept})
	if p.dryRun {
		return nil
	}
	if err := p.d.fs.Rename(path.Join(p.d.path, name), path.Join(p.d.path, kept)); err != nil {
		return err
	}
	return p.d.fs.SyncDir(p.d.path)
}

// freeName gives name, or name with a number, such that no file has it.
func (p *plan) freeName(name string) string {
	for n, try := 2, name; ; n++ {
		if _, err := p.d.fs.Size(path.Join(p.d.path, try)); errors.Is(err, fs.ErrNotExist) {
			return try
		}
		try = fmt.Sprintf("%s.%d", name, n)
	}
}

// healCheckpoint keeps the damaged copy and writes both again.
func (p *plan) healCheckpoint() error {
	for _, name := range checkpoint.Names {
		f, err := p.d.fs.Open(path.Join(p.d.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		buf := make([]byte, size)
		_, err = f.ReadAt(buf, 0)
		if err := errors.Join(f.Close(), ignoreEOF(err)); err != nil {
			return err
		}
		if _, err := checkpoint.Decode(buf); err == nil {
			continue
		}
		if err := p.setAside(name, "write the damaged copy of the checkpoint again from the other"); err != nil {
			return err
		}
	}
	if p.dryRun {
		return nil
	}
	_, err := checkpoint.Write(p.d.fs, p.d.path, p.d.check)
	return err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// heal mends one data file if it has findings.
func (p *plan) heal(c *scan, r *Report) error {
	var runs []*Finding
	header := false
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.File != c.file.Name || !f.Damage:
		case f.Kind == KindHeader:
			header = true
		case f.Kind == KindFrame:
			runs = append(runs, f)
		}
	}
	if len(runs) == 0 && !header {
		return nil
	}
	m, err := newMender(p.d, c, r, runs, header)
	if err != nil {
		return err
	}
	kept := p.freeName(strings.TrimSuffix(c.file.Name, format.ExtData) + format.ExtDamaged)
	p.actions = append(p.actions, Action{c.file.Name, m.describe(), kept})
	if !p.dryRun {
		if err := p.replace(c, m, kept); err != nil {
			return err
		}
	}
	if c.file.Role == RoleJournal {
		return nil
	}
	return p.setAside(format.FileName(c.file.ID, format.ExtIndex), "set the index aside; the next start builds it again")
}

// replace puts the mended copy in the file's place.
func (p *plan) replace(c *scan, m *mender, kept string) error {
	name := path.Join(p.d.path, c.file.Name)
	copyName := path.Join(p.d.path, format.FileName(c.file.ID, extRepair))
	if err := m.write(copyName); err != nil {
		return err
	}
	if err := p.d.fs.Rename(name, path.Join(p.d.path, kept)); err != nil {
		return err
	}
	if err := p.d.fs.Rename(copyName, name); err != nil {
		return err
	}
	return p.d.fs.SyncDir(p.d.path)
}
