package journal

import (
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// committer is the state of the one goroutine that writes.
type committer struct {
	cur      *active // nil between files
	next     model.LSN
	lastSync time.Time
	marked   bool // nothing was written since the last mark
	build    format.Builder
	vecs     [][]byte
	spare    []item // the queue's other slice
}

// active is the file that is being written.
type active struct {
	Sealed
	f       vfs.File
	size    int64 // capacity, bytes
	reserve bool  // it was the disk-full reserve
	header  []byte
	dirty   bool // written since the last sync
}

// limit is where frames must end: a closing mark always fits after them.
func (a *active) limit() int64 { return a.size - format.MarkSize }

// run is the committer's goroutine.
func (j *Journal) run() {
	defer close(j.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		items := j.take()
		if len(items) == 0 {
			timer.Reset(j.untilIdleWork())
			select {
			case <-j.wake:
			case <-timer.C:
				if err := j.idleWork(); err != nil && j.fail(err, nil) {
					return
				}
			}
			continue
		}
		if closed := j.process(items); closed {
			return
		}
	}
}

// take swaps the queue for an empty one.
func (j *Journal) take() []item {
	c := &j.com
	j.mu.Lock()
	defer j.mu.Unlock()
	items := j.mu.queue
	j.mu.queue, c.spare = c.spare[:0], items
	return items
}

// process does what is in line and reports whether it met the end. The items
// are cleared so that the queue's memory holds no group.
func (j *Journal) process(items []item) (closed bool) {
	defer clear(items)
	for rest := items; len(rest) > 0; {
		if c := rest[0].ctl; c != nil {
			rest = rest[1:]
			err := j.control(c.op)
			if c.op == opClose {
				c.done <- err
				return true
			}
			if err != nil {
				j.fail(err, rest)
				rest = nil
			}
			c.done <- err
			continue
		}
		n, err := j.commit(rest)
		if err != nil {
			return j.fail(err, rest)
		}
		rest = rest[n:]
	}
	return false
}

func (j *Journal) control(op controlOp) error {
	j.mu.Lock()
	failed := j.mu.failed
	j.mu.Unlock()
	if failed != nil {
		if op == opClose {
			j.closeFile()
		}
		return failed
	}
	switch {
	case op == opBarrier && j.com.cur != nil && j.com.cur.dirty:
		return j.sync()
	case op == opRotate && j.com.cur != nil && j.com.cur.Entries > 0, op == opClose && j.com.cur != nil:
		return j.seal(op == opRotate)
	}
	return nil
}

// commit writes the first groups of items as one frame and completes them. It
// gives the number of groups.
func (j *Journal) commit(items []item) (int, error) {
	if err := j.makeRoom(items[0].size); err != nil {
		return 0, err
	}
	c := &j.com
	n, size := j.gather(items)
	h := format.FrameHeader{File: c.cur.ID, LSN: c.next, Durable: j.Durable()}
	if err := j.writeFrame(&h); err != nil {
		return 0, err
	}
	c.cur.Entries += c.build.Entries()
	c.cur.DataBytes += c.build.DataBytes()
	c.marked = false
	if err := j.syncIfDue(); err != nil {
		return 0, err
	}
	j.stats.frame(n, int64(h.Length), c.build.DataBytes())
	j.mu.Lock()
	j.mu.pending -= size
	j.mu.room.left = c.cur.limit() - c.cur.Bytes
	j.mu.Unlock()
	for _, it := range items[:n] {
		it.group.Done(h.LSN, nil)
	}
	return n, nil
}

// gather puts as many groups into the builder as one frame takes, at least one.
func (j *Journal) gather(items []item) (n int, size int64) {
	c := &j.com
	c.build.Reset()
	room := min(c.cur.limit()-c.cur.Bytes, max(gatherMax, items[0].size))
	entries, data := 0, int64(0)
	for _, it := range items {
		if it.ctl != nil {
			break
		}
		es := it.group.Entries
		for i := range es {
			data += int64(len(es[i].Data))
		}
		if entries += len(es); n > 0 && format.EncodedMax(entries, data) > room {
			break
		}
		for i := range es {
			c.build.Add(&es[i])
		}
		n++
		size += it.size
	}
	return n, size
}

// makeRoom sees to it that a frame of size bytes fits the current file.
func (j *Journal) makeRoom(size int64) error {
	c := &j.com
	if c.cur != nil && c.cur.Bytes+size > c.cur.limit() {
		if err := j.seal(true); err != nil {
			return err
		}
	}
	if c.cur != nil {
		return nil
	}
	p := j.takeFile()
	if p == nil {
		return errClosed
	}
	c.cur = &active{
		Sealed:  Sealed{ID: p.id, Path: p.path, FirstLSN: c.next, Bytes: format.HeaderSize},
		f:       p.f,
		size:    p.size,
		reserve: p.reserve,
		header: format.FileHeader{
			Kind: format.KindJournal, ID: p.id, FirstLSN: c.next, Incarnation: j.o.Incarnation,
		}.Encode(),
	}
	j.files.add(&file{Sealed: c.cur.Sealed, size: p.size, live: true})
	j.mu.Lock()
	j.mu.room.left, j.mu.room.inReserve = c.cur.limit()-c.cur.Bytes, p.reserve
	j.mu.Unlock()
	return nil
}

// writeFrame writes what the builder holds at the end of the current file.
func (j *Journal) writeFrame(h *format.FrameHeader) error {
	c := &j.com
	vecs, err := c.build.Encode(h, c.cur.Bytes)
	if err != nil {
		return storageFailed("encode journal frame", err)
	}
	pos := c.cur.Bytes
	if c.cur.header != nil {
		c.vecs = append(append(c.vecs[:0], c.cur.header), vecs...)
		vecs, pos = c.vecs, 0
	}
	c.cur.dirty = true
	_, err = c.cur.f.WriteVec(vecs, pos)
	clear(c.vecs)
	if err != nil {
		return storageFailed("write "+c.cur.Path, err)
	}
	c.cur.header = nil
	c.cur.Bytes += int64(h.Length)
	c.cur.LastLSN = h.LSN
	c.next = h.LSN + 1
	return nil
}

// mark writes a frame without entries; it says what is durable.
func (j *Journal) mark(flags format.Flags) error {
	c := &j.com
	c.build.Reset()
	h := format.FrameHeader{File: c.cur.ID, LSN: c.next, Durable: j.Durable(), Flags: flags}
	if err := j.writeFrame(&h); err != nil {
		return err
	}
	c.marked = true
	j.stats.bytesWritten.Add(uint64(h.Length))
	return nil
}

// sync makes the current file durable.
func (j *Journal) sync() error {
	c := &j.com
	start := time.Now()
	if err := c.cur.f.SyncData(); err != nil {
		return storageFailed("sync "+c.cur.Path, err)
	}
	c.lastSync = time.Now()
	j.stats.sync(c.lastSync.Sub(start))
	c.cur.dirty = false
	j.durable.Store(uint64(c.cur.LastLSN))
	return nil
}

func (j *Journal) syncIfDue() error {
	switch d := j.o.Sync.interval(); {
	case j.o.Sync == SyncAlways, d > 0 && time.Since(j.com.lastSync) >= d:
		return j.sync()
	}
	return nil
}

// seal closes the current file with a last mark and a sync, so that the next
// file is only written when all before it is durable. It hands the file to
// OnSeal if asked to.
func (j *Journal) seal(tell bool) error {
	c := &j.com
	if err := j.mark(format.FlagLast); err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	if err := c.cur.f.Close(); err != nil {
		return storageFailed("close "+c.cur.Path, err)
	}
	s := c.cur.Sealed
	c.cur = nil
	j.files.seal(s)
	j.mu.Lock()
	j.mu.room.left, j.mu.room.inReserve = 0, false
	j.mu.Unlock()
	if tell && j.o.OnSeal != nil {
		j.o.OnSeal(s)
	}
	return nil
}

// untilIdleWork is the time to wait for groups before idleWork.
func (j *Journal) untilIdleWork() time.Duration {
	c := &j.com
	if c.cur == nil {
		return time.Hour
	}
	if d := j.o.Sync.interval(); d > 0 && c.cur.dirty {
		return max(0, d-time.Since(c.lastSync))
	}
	if !c.marked {
		return idleMark
	}
	return time.Hour
}

// idleWork syncs when an interval is over, and else promises what is durable.
// The promise itself is not synced: it helps when it reaches the disk.
func (j *Journal) idleWork() error {
	c := &j.com
	if c.cur == nil {
		return nil
	}
	if d := j.o.Sync.interval(); d > 0 && c.cur.dirty {
		return j.sync()
	}
	if c.marked || c.cur.Bytes+format.MarkSize > c.cur.limit() {
		c.marked = true
		return nil
	}
	return j.mark(0)
}

// fail ends the journal's life for err: the waiters in items and in the queue
// are told, in order, then OnFatal. It reports whether a Close was among them.
// The first failure stays.
func (j *Journal) fail(err error, items []item) (closed bool) {
	first := false
	j.mu.Lock()
	if j.mu.failed == nil && !(j.mu.closed && err == errClosed) {
		j.mu.failed, first = err, true
	}
	items = append(items[:len(items):len(items)], j.mu.queue...)
	j.mu.queue = nil
	j.mu.Unlock()
	var closing *control
	for _, it := range items {
		switch {
		case it.group != nil:
			it.group.Done(0, err)
		case it.ctl.op == opClose:
			closing = it.ctl
		default:
			it.ctl.done <- err
		}
	}
	if first {
		j.log.Error("journal failed; nothing more is accepted", "error", err)
		if j.o.OnFatal != nil {
			j.o.OnFatal(err)
		}
	}
	if closing != nil {
		j.closeFile()
		closing.done <- err
	}
	return closing != nil
}

// closeFile closes the current file without making anything durable.
func (j *Journal) closeFile() {
	if c := &j.com; c.cur != nil {
		if err := c.cur.f.Close(); err != nil {
			j.log.Warn("closing the journal file", "path", c.cur.Path, "error", err)
		}
		c.cur = nil
	}
}
