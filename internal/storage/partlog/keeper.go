package partlog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

const (
	// keeperTick is how often the keeper looks for work that nothing announces.
	keeperTick = time.Second
	// retryMax is the longest pause after work that failed.
	retryMax = 30 * time.Second
)

// keeper is the one background goroutine: it settles sealed journal files, runs
// retention, merges, takes checkpoints and removes files. It works off the
// acknowledgement path; when it fails (a full disk) it tries again later and
// nothing is lost, for a file is given up only after a checkpoint without it.
type keeper struct {
	wake chan struct{} // capacity 1
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	sealed []*sealedFile // in LSN order
	doomed []func() error

	unsettled atomic.Int64 // bytes of sealed files
	garbage   atomic.Bool  // a segment is referred to no more
	sweep     atomic.Bool  // retention is asked for

	// round is held during one round of work; its fields are the round's.
	round      sync.Mutex
	from       model.LSN     // the journal is needed from here on
	seq        uint64        // of the last checkpoint
	settled    []*sealedFile // flushed, not yet left out by a checkpoint
	dirty      bool          // something has changed since the last checkpoint
	adopted    int64         // bytes of files adopted since then
	checkpoint time.Time     // when it was
	retention  time.Time     // when it was

	lookForMerge bool
	unmergeable  map[model.PartitionID]bool // their batches are damaged
	compaction   time.Time                  // when logs to compact were last looked for
	pacer        pacer
	nested       bool // settling in the middle of longer work
}

// sealed takes a file over from the journal. It runs on the committer's goroutine.
func (s *Store) sealed(f journal.Sealed) {
	k := &s.keeper
	s.mu.RLock()
	jf := s.journalFiles[f.ID]
	s.mu.RUnlock()
	k.mu.Lock()
	k.sealed = append(k.sealed, &sealedFile{Sealed: f, content: jf, at: s.o.Clock()})
	k.mu.Unlock()
	k.unsettled.Add(f.Bytes)
	k.signal()
}

func (k *keeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// startKeeper begins the background work; stopKeeper ends and joins it.
func (s *Store) startKeeper() {
	ctx, cancel := context.WithCancel(context.Background())
	s.keeper.stop = cancel
	s.keeper.wg.Add(1)
	go func() {
		defer s.keeper.wg.Done()
		s.keep(ctx)
	}()
}

func (s *Store) stopKeeper() {
	s.keeper.stop()
	s.keeper.wg.Wait()
}

func (s *Store) keep(ctx context.Context) {
	pause := keeperTick
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		wake := s.keeper.wake
		if pause > keeperTick {
			wake = nil // after a failure only time helps
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer.C:
		}
		err := s.work(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause = keeperTick
		default:
			pause = min(2*pause, retryMax)
			s.stats.workErrors.Add(1)
			s.log.Error("background work on stored data stopped; it is tried again", "retry_in", pause, "disk_full", vfs.IsNoSpace(err), "err", err)
		}
		timer.Reset(pause)
	}
}

// work does what is due, once.
func (s *Store) work(ctx context.Context) error {
	k := &s.keeper
	k.round.Lock()
	defer k.round.Unlock()
	if s.retentionDue() {
		if err := s.retain(ctx); err != nil {
			return err
		}
	}
	if err := s.settleAll(ctx); err != nil {
		return err
	}
	if err := s.compactionRound(ctx); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = s.mergeRound(ctx); err != nil {
			return err
		}
		if err := s.settleAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settleAll settles the sealed journal files that it is time for, takes the
// checkpoint that gives them back, and removes what is not needed any more.
func (s *Store) settleAll(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = s.settleOldest(ctx); err != nil {
			return err
		}
		if s.checkpointDue() {
			if err := s.checkpointRound(ctx); err != nil {
				return err
			}
		}
		if err := s.removeDoomed(); err != nil {
			return err
		}
	}
	return nil
}

// lastRound leaves a checkpoint for the next start, which then knows where each
// log ended.
func (s *Store) lastRound() error {
	k := &s.keeper
	k.round.Lock()
	defer k.round.Unlock()
	return errors.Join(s.checkpointRound(context.Background()), s.removeDoomed())
}

// settleOldest flushes or adopts the oldest sealed files, if it is time to.
func (s *Store) settleOldest(ctx context.Context) (more bool, err error) {
	k := &s.keeper
	k.mu.Lock()
	sealed := k.sealed
	k.mu.Unlock()
	st := nextStep(sealed, s.o.JournalCap, s.o.Clock())
	if st.files == 0 {
		return false, nil
	}
	files := sealed[:st.files]
	if st.adopt {
		err = s.adopt(files[0])
	} else {
		err = s.flush(ctx, files)
	}
	if model.ClassOf(err) == model.ClassCorrupt {
		// What cannot be read must not be copied nor lost: the files stay as
		// they are, and reads name the damage.
		s.log.Error("a sealed journal file is damaged; it is kept as it is", "err", err)
		for _, f := range files {
			if err = s.adopt(f); err != nil {
				break
			}
			s.settledOne(f, true)
		}
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	for _, f := range files {
		s.settledOne(f, st.adopt)
	}
	return true, nil
}

// settledOne notes that the oldest sealed file's data is in segments.
func (s *Store) settledOne(f *sealedFile, adopted bool) {
	k := &s.keeper
	k.mu.Lock()
	k.sealed = k.sealed[1:]
	k.mu.Unlock()
	k.unsettled.Add(-f.Bytes)
	s.mu.Lock()
	delete(s.journalFiles, f.ID)
	s.mu.Unlock()
	k.from = max(k.from, f.LastLSN+1)
	k.dirty = true
	if adopted {
		s.stats.adopted.Add(1)
		return
	}
	s.stats.flushed.Add(1)
	k.settled = append(k.settled, f)
}

// doom lets the keeper do what removes a file that nobody reads any more.
func (s *Store) doom(remove func() error) {
	k := &s.keeper
	k.mu.Lock()
	k.doomed = append(k.doomed, remove)
	k.mu.Unlock()
	k.signal()
}

// removeDoomed removes what no reader holds.
func (s *Store) removeDoomed() error {
	k := &s.keeper
	k.mu.Lock()
	doomed := k.doomed
	k.doomed = nil
	k.mu.Unlock()
	var err error
	for _, remove := range doomed {
		err = errors.Join(err, remove())
	}
	if len(doomed) > 0 {
		s.journal.CheckSpace()
	}
	return err
}
