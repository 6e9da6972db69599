package journal

import (
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// pollEvery is the time between looks at the disk's space, and between attempts
// to make a file when there was none.
const pollEvery = time.Second

// preparer keeps the next file ready and the pool of spare files filled.
type preparer struct {
	ready   chan *prepared // capacity 1
	stalled chan struct{}  // capacity 1: an attempt to make a file failed
	kick    chan struct{}  // capacity 1: something has changed
	starved atomic.Bool    // the committer waits for a file
	bulk    atomic.Bool    // the last sealed file was released, not recycled

	mu struct {
		sync.Mutex
		spares []spare
	}
}

// prepared is a file that can be written at once.
type prepared struct {
	id      model.FileID
	path    string
	f       vfs.File
	size    int64
	reserve bool
	taken   chan struct{} // closed when the committer has it
	mu      sync.Mutex    // held while zeros are written and while it is taken

	// Owned by the preparer.
	zeroed int64 // bytes that were written before, so that a sync need not map them
	made   time.Time
}

// take marks the file as the committer's.
func (f *prepared) take() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.taken)
}

// ifWaiting calls write unless the file was taken, and keeps it from being taken
// meanwhile: the committer's frames and the zeros must not meet.
func (f *prepared) ifWaiting(write func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.taken:
		return false
	default:
		write()
		return true
	}
}

// spare is a file whose content is worth nothing but whose room is allocated.
type spare struct {
	path string
	size int64
}

// room is what Append needs to know of the space for new frames.
type room struct {
	left      int64 // bytes left in the current file
	inReserve bool  // the current file was the reserve: for essential groups only
	full      error // why there is no next file; nil if there is one, or soon
	reserve   int64 // bytes that the unused reserve holds
	hard      bool  // free space is below the hard limit
}

// refuse says why there is no room, when need bytes would be in line.
func (r *room) refuse(need int64, essential bool) error {
	if r.hard && !essential {
		return errHard
	}
	if r.full == nil {
		return nil
	}
	have := r.left
	switch {
	case essential:
		have += r.reserve
	case r.inReserve:
		have = 0
	}
	if need > have {
		return diskFull(r.full)
	}
	return nil
}

func (p *preparer) nudge() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// takeFile gives the committer the next file; nil if the journal is closing and
// there is no room for one.
func (j *Journal) takeFile() *prepared {
	p := &j.prep
	select {
	case f := <-p.ready:
		f.take()
		return f
	default:
	}
	p.starved.Store(true)
	defer p.starved.Store(false)
	p.nudge()
	for {
		select {
		case f := <-p.ready:
			f.take()
			return f
		case <-p.stalled: // maybe from before: the look at closed decides
			j.mu.Lock()
			closing := j.mu.closed
			j.mu.Unlock()
			if closing {
				return nil
			}
		}
	}
}

// prepare is the preparer's goroutine: a file is made, offered, and while nobody
// takes it there is time for the chores.
func (j *Journal) prepare() {
	defer j.prepWG.Done()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		f, err := j.nextFile()
		if first := j.noteRoom(err); first {
			j.log.Warn("no room for the next journal file", "error", err)
		}
		var taken chan struct{} // nil: nothing to wait for but another try
		if f != nil {
			taken = f.taken
			j.prep.ready <- f // never blocks: the one before was taken
		} else {
			select {
			case j.prep.stalled <- struct{}{}:
			default:
			}
		}
		for waiting := true; waiting; {
			j.checkSpace()
			j.keepReserve()
			select {
			case <-taken:
				waiting = false
			case <-poll.C:
				waiting = f != nil && j.zeroAhead(f)
			case <-j.prep.kick:
				waiting = f != nil
			case <-j.stop:
				j.dropReady()
				return
			}
		}
	}
}

// dropReady makes the prepared file that nobody took a spare again: a blank journal
// file would have to be searched for frames at the next start.
func (j *Journal) dropReady() {
	select {
	case f := <-j.prep.ready:
		err := f.f.Close()
		if err == nil {
			err = j.o.FS.Rename(f.path, j.path(f.id, format.ExtSpare))
		}
		if err == nil {
			err = j.o.FS.SyncDir(j.o.Dir)
		}
		if err != nil {
			j.log.Warn("closing the prepared journal file", "path", f.path, "error", err)
		}
	default:
	}
}

// noteRoom tells Append whether there is, or will soon be, a next file, and
// reports whether it is news that there is none.
func (j *Journal) noteRoom(err error) (first bool) {
	j.prep.mu.Lock()
	var reserve int64
	for _, s := range j.prep.mu.spares {
		reserve += s.size - format.HeaderSize - format.MarkSize
	}
	j.prep.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	first = err != nil && j.mu.room.full == nil
	j.mu.room.full, j.mu.room.reserve = err, reserve
	return first
}

// nextFile makes a spare file or a new one the next journal file. The last spare
// is the reserve: it is used only when no file can be made and groups wait for
// one; then the reason is given as well.
func (j *Journal) nextFile() (*prepared, error) {
	if s, ok := j.popSpare(1); ok {
		return j.activate(s)
	}
	f, err := j.makeFile(format.ExtData)
	if err == nil || !j.prep.starved.Load() {
		return f, err
	}
	s, ok := j.popSpare(0)
	if !ok {
		return nil, err
	}
	j.log.Warn("the disk is full: the journal goes on in its reserve", "error", err)
	f, aerr := j.activate(s)
	if aerr != nil {
		return nil, aerr
	}
	f.reserve = true
	return f, err
}

// activate gives a spare file its new name. Frames of its earlier life name
// another file id, so they are not taken for this file's.
func (j *Journal) activate(s spare) (*prepared, error) {
	id := j.o.NextFileID()
	p := &prepared{id: id, path: j.path(id, format.ExtData), size: s.size, zeroed: s.size, taken: make(chan struct{})}
	err := j.o.FS.Rename(s.path, p.path)
	if err == nil {
		err = j.o.FS.SyncDir(j.o.Dir)
	}
	if err == nil {
		p.f, err = j.o.FS.OpenRW(p.path)
	}
	if err != nil {
		return nil, err
	}
	j.stats.recycled.Add(1)
	return p, nil
}

// makeFile creates a file with room for FileSize bytes, under a durable name.
func (j *Journal) makeFile(ext string) (*prepared, error) {
	id := j.o.NextFileID()
	p := &prepared{id: id, path: j.path(id, ext), size: j.o.FileSize, taken: make(chan struct{})}
	p.made = time.Now()
	var err error
	if p.f, err = j.o.FS.Create(p.path); err != nil {
		return nil, err
	}
	if err = p.f.Allocate(0, p.size); err == nil {
		err = p.f.Sync()
	}
	if err == nil {
		err = j.o.FS.SyncDir(j.o.Dir)
	}
	if err != nil {
		p.f.Close()
		if rerr := j.o.FS.Remove(p.path); rerr != nil {
			j.log.Warn("removing an unfinished journal file", "path", p.path, "error", rerr)
		}
		return nil, err
	}
	j.stats.created.Add(1)
	return p, nil
}

// popSpare takes the oldest spare if more than keep are there.
func (j *Journal) popSpare(keep int) (spare, bool) {
	p := &j.prep
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.spares) <= keep {
		return spare{}, false
	}
	s := p.mu.spares[0]
	p.mu.spares = p.mu.spares[1:]
	return s, true
}

// pushSpare adds a spare.
func (j *Journal) pushSpare(s spare) {
	j.prep.mu.Lock()
	defer j.prep.mu.Unlock()
	j.prep.mu.spares = append(j.prep.mu.spares, s)
}

// poolHasRoom reports whether one more spare is wanted: the reserve always, others
// while the disk is not short.
func (j *Journal) poolHasRoom() bool {
	j.prep.mu.Lock()
	defer j.prep.mu.Unlock()
	n := len(j.prep.mu.spares)
	return n == 0 || n <= j.o.PoolFiles && j.SpaceState() == SpaceOK
}

// keepReserve makes the reserve when it is missing and the disk is not short.
func (j *Journal) keepReserve() {
	j.prep.mu.Lock()
	n := len(j.prep.mu.spares)
	j.prep.mu.Unlock()
	if n > 0 || j.SpaceState() != SpaceOK {
		return
	}
	f, err := j.makeFile(format.ExtSpare)
	if err != nil {
		j.log.Warn("no room for the journal's reserve file", "error", err)
		return
	}
	if err := f.f.Close(); err != nil {
		j.log.Warn("closing the journal's reserve file", "path", f.path, "error", err)
	}
	j.pushSpare(spare{f.path, f.size})
	j.mu.Lock()
	full := j.mu.room.full
	j.mu.Unlock()
	j.noteRoom(full)
}

func (j *Journal) path(id model.FileID, ext string) string {
	return path.Join(j.o.Dir, format.FileName(id, ext))
}
