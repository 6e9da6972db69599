package partlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
)

const (
	// checkpointPause is the least time between checkpoints while files wait to
	// be given back; checkpointAge the longest while anything has changed.
	checkpointPause = 2 * time.Second
	checkpointAge   = 2 * time.Minute
	// adoptedShare is the part of the journal cap that may be adopted before a
	// checkpoint says so: until then a start reads it all again.
	adoptedShare = 4
)

// checkpointDue decides whether to write one now.
func (s *Store) checkpointDue() bool {
	k := &s.keeper
	age := s.o.Clock().Sub(k.checkpoint)
	return k.dirty && (age >= checkpointAge || k.adopted >= s.o.JournalCap/adoptedShare) ||
		(len(k.settled) > 0 || k.garbage.Load()) && age >= checkpointPause
}

// checkpointRound writes a checkpoint and gives up the files that it does not
// need. The order is what makes it safe:
//   - the LSN from which to replay is fixed first: all below lies in segments;
//   - dead segments are chosen before the logs' starts are read, which only grow,
//     so that what is left out is below the starts that are written;
//   - the barrier follows the snapshots: none holds what is not durable;
//   - files go only when both copies are on disk.
func (s *Store) checkpointRound(ctx context.Context) error {
	k := &s.keeper
	k.garbage.Store(false)
	st := checkpoint.State{Seq: k.seq + 1, Incarnation: s.incarnation, From: k.from}
	live, dead := s.splitSegments()
	st.Segments = live
	for _, l := range s.all() {
		if p, ok := l.checkpoint(); ok {
			st.Partitions = append(st.Partitions, p)
		}
	}
	slices.SortFunc(st.Partitions, func(a, b checkpoint.Partition) int { return a.ID.Compare(b.ID) })
	if err := s.journal.Barrier(ctx); err != nil {
		return err
	}
	if err := s.writeCheckpoint(st); err != nil {
		return err
	}
	s.stats.checkpoints.Add(1)
	k.seq, k.checkpoint, k.dirty, k.adopted = st.Seq, s.o.Clock(), false, 0
	s.giveUp(dead)
	s.keepReserve()
	return nil
}

// splitSegments lists the segments that logs refer to, and those that none does.
func (s *Store) splitSegments() (live []checkpoint.Segment, dead []*segment) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, seg := range s.segments {
		if seg.spans.Load() == 0 {
			dead = append(dead, seg)
			continue
		}
		live = append(live, checkpoint.Segment{File: id, Size: seg.size, Adopted: seg.adopted})
	}
	slices.SortFunc(live, func(a, b checkpoint.Segment) int { return cmp.Compare(a.File, b.File) })
	return live, dead
}

// giveUp removes dead segments and hands flushed journal files back, each as soon
// as its last reader is done.
func (s *Store) giveUp(dead []*segment) {
	k := &s.keeper
	s.mu.Lock()
	for _, seg := range dead {
		delete(s.segments, seg.id())
	}
	s.mu.Unlock()
	for _, seg := range dead {
		seg.data.Retire(func() {
			s.blocks.Forget(seg.idx)
			seg.idx.Retire(func() { s.doom(func() error { return s.removeSegment(seg) }) })
		})
	}
	for _, f := range k.settled {
		recycle := func() error { return s.journal.Recycle(f.ID) }
		if f.content == nil {
			s.doom(recycle)
			continue
		}
		f.content.file.Retire(func() { s.doom(recycle) })
	}
	k.settled = nil
}

// checkpoint gives what a checkpoint says of the log; nothing of a log that is
// dropped or was never used.
func (l *Log) checkpoint() (p checkpoint.Partition, ok bool) {
	l.mu.Lock()
	p = checkpoint.Partition{ID: l.id, UpTo: l.recovered.UpTo, Snapshot: l.recovered.Snapshot}
	snapshot := l.snapshotter
	l.mu.Unlock()
	if snapshot != nil {
		p.Snapshot, p.UpTo = snapshot()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.Start, p.End, p.Clean = l.Start(), l.End(), l.clean
	used := p.End > 0 || len(p.Snapshot) > 0
	return p, used && !l.dropped
}
