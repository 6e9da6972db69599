// Package journal is the broker's one write-ahead log on files: it makes append
// groups durable, in order, with as few syncs as there can be.
//
// One goroutine, the committer, takes every group that has gathered, writes them
// as one frame, syncs once, and completes them in order; what arrives meanwhile
// is the next frame, so that batching needs no timer. A second goroutine, the
// preparer, always keeps the next file ready, so that rotation does not wait.
//
// What must hold:
//   - a group is done only after its frame is synced (SyncAlways), and groups are
//     done in append order;
//   - LSNs have no gap; a file is synced as a whole before the next one is written;
//   - an accepted group is written or the journal has failed: room is checked at Append;
//   - a failed write or sync is never tried again: what it left behind is unknown,
//     the disk is the truth at the next start;
//   - a bad frame above the last promised LSN is a torn tail and is cut off; at or
//     below it is damage: it is reported, never taken for the end, never deleted.
//
// It does not know what the data means, and it does not decide when a file's
// content is no longer needed: partlog calls Recycle or Release.
// docs/formats/journal.md gives every byte.
package journal

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Defaults and limits.
const (
	DefaultFileSize = 64 << 20
	DefaultMaxGroup = 32 << 20 // encoded bytes of one group
	defaultPool     = 4
	// gatherMax ends a frame: more would add latency and no throughput.
	gatherMax = 8 << 20
	// minFileSize holds the header block, one small frame and the closing mark.
	minFileSize = 16 << 10
	// idleMark is the pause after which a mark frame promises what is durable.
	idleMark = 10 * time.Millisecond
)

// Options configure a journal. FS, Dir and NextFileID must be set.
type Options struct {
	FS       vfs.FS
	Dir      string
	FileSize int64    // of a journal file, bytes; DefaultFileSize if 0
	MaxGroup int64    // of one group, bytes; DefaultMaxGroup, or what fits a file
	Sync     SyncMode // SyncAlways if 0
	// NextFileID gives ids that rise and were never used in the data directory.
	// It is called from the preparer's goroutine.
	NextFileID func() model.FileID
	// OnSeal is told of each file that will not be written any more, in LSN
	// order: on the committer's goroutine, and within Open for files found there
	// (after their entries were replayed). It must be short.
	OnSeal func(Sealed)
	// OnFatal is called once, when a write or sync has failed, after all waiters
	// were told. It runs on the committer's goroutine and must not call Close.
	OnFatal func(error)
	// OnSpace is told of changes of the disk's state, on the preparer's goroutine.
	OnSpace func(SpaceState)
	// Adopted names the files in Dir that belong to the caller (Release): Open
	// leaves them alone.
	Adopted func(model.FileID) bool
	// Settled reports whether the caller knows what became of all frames from
	// first to last: files that left (Recycle, Release) before older ones did
	// leave such gaps. Frames of a gap that is not settled are Damage.
	Settled func(first, last model.LSN) bool
	// Limits of free space; zero means the defaults.
	Limits      SpaceLimits
	Incarnation uint64
	Logger      *slog.Logger
	PoolFiles   int // recycled files that are kept for reuse, besides the reserve
}

// Sealed describes a file that is complete.
type Sealed struct {
	ID       model.FileID
	Path     string
	FirstLSN model.LSN
	LastLSN  model.LSN
	Bytes    int64 // used bytes of the file, header block included
	// DataBytes and Entries count what the frames hold (Entries as given to
	// Append). They are 0 for a file that Open skipped because all of it lies
	// below its from.
	DataBytes int64
	Entries   int
}

// Journal is the write-ahead log of one broker. It implements storage.WAL.
type Journal struct {
	// Immutable after Open.
	o      Options
	log    *slog.Logger
	damage []Damage
	wake   chan struct{} // capacity 1: the queue is not empty
	ended  chan struct{} // closed when the committer has ended
	stop   chan struct{} // closed to end the preparer
	prepWG sync.WaitGroup

	durable atomic.Uint64
	stats   counters

	com   committer // owned by the committer's goroutine
	prep  preparer
	files files

	mu struct {
		sync.Mutex
		queue   []item
		pending int64 // bytes accepted and not yet written
		closed  bool
		failed  error
		room    room
	}
}

var _ storage.WAL = (*Journal)(nil)

// item is what stands in line for the committer: a group, or a control.
type item struct {
	group *storage.Group
	size  int64 // upper bound of the group's own frame
	ctl   *control
}

// control is a request that is answered in append order.
type control struct {
	op   controlOp
	done chan error // capacity 1
}

type controlOp uint8

const (
	opBarrier controlOp = iota
	opRotate
	opClose
)

// Append puts g in line. It refuses with ClassClosed, ClassStorage (after a
// failure), ClassTooLarge, or ClassDiskFull (try again when there is room).
func (j *Journal) Append(g *storage.Group) error {
	var data int64
	for i := range g.Entries {
		data += int64(len(g.Entries[i].Data))
	}
	size := format.EncodedMax(len(g.Entries), data)
	if size > j.o.MaxGroup {
		return tooLarge(size, j.o.MaxGroup)
	}
	j.mu.Lock()
	if err := j.refuseLocked(size, g.Essential); err != nil {
		j.mu.Unlock()
		return err
	}
	j.mu.pending += size
	j.mu.queue = append(j.mu.queue, item{group: g, size: size})
	j.mu.Unlock()
	j.signal()
	return nil
}

// refuseLocked says why a group of size bytes cannot be accepted; nil if it can.
func (j *Journal) refuseLocked(size int64, essential bool) error {
	switch {
	case j.mu.failed != nil:
		return j.mu.failed
	case j.mu.closed:
		return errClosed
	}
	return j.mu.room.refuse(j.mu.pending+size, essential)
}

func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Durable is the LSN up to which all is synced, whatever the sync mode.
func (j *Journal) Durable() model.LSN { return model.LSN(j.durable.Load()) }

// Barrier returns when all that was appended before is synced, in every sync mode.
func (j *Journal) Barrier(ctx context.Context) error { return j.request(ctx, opBarrier) }

// Rotate seals the current file, if it holds anything.
func (j *Journal) Rotate() error { return j.request(context.Background(), opRotate) }

// Close syncs what was appended, ends the goroutines and closes the files. After
// a failure it gives that error. A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.mu.closed {
		j.mu.Unlock()
		<-j.ended
		return nil
	}
	c := &control{op: opClose, done: make(chan error, 1)}
	j.mu.closed = true
	j.mu.queue = append(j.mu.queue, item{ctl: c})
	j.mu.Unlock()
	j.signal()
	j.prep.nudge() // should the committer wait for a file, this decides
	<-j.ended
	close(j.stop)
	j.prepWG.Wait()
	return <-c.done
}

// request puts a control in line and waits for the answer.
func (j *Journal) request(ctx context.Context, op controlOp) error {
	c := &control{op: op, done: make(chan error, 1)}
	j.mu.Lock()
	if err := j.mu.failed; err != nil || j.mu.closed {
		j.mu.Unlock()
		if err == nil {
			err = errClosed
		}
		return err
	}
	j.mu.queue = append(j.mu.queue, item{ctl: c})
	j.mu.Unlock()
	j.signal()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
