package partlog

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"path"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
)

// blockListBudget bounds the block lists of indexes kept in memory.
const blockListBudget = 16 << 20

// Open locks the directory, loads checkpoint and indexes, replays the journal.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.FS.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := o.FS.Lock(path.Join(o.Dir, format.LockName))
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", o.Dir, err)
	}
	s := &Store{
		o: o, fs: o.FS, dir: o.Dir, log: o.Logger, lock: lock,
		files: datafile.NewSet(o.FS, o.OpenFiles), blocks: datafile.NewBlocks(blockListBudget),
		logs: make(map[model.PartitionID]*Log), journalFiles: make(map[model.FileID]*journalFile),
		segments: make(map[model.FileID]*segment),
		keeper:   keeper{wake: make(chan struct{}, 1), unmergeable: make(map[model.PartitionID]bool)},
	}
	s.tail.budget = o.MemoryBudget
	if err := s.recover(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Dir, err), lock.Close())
	}
	s.startKeeper()
	return s, nil
}

// recover brings the store to where the last one left it.
func (s *Store) recover(ctx context.Context) error {
	start := s.o.Clock()
	st, err := s.loadCheckpoint()
	if err != nil {
		return err
	}
	s.incarnation, s.keeper.seq, s.keeper.from, s.keeper.checkpoint = st.Incarnation, st.Seq, st.From, start
	// The ids of new files carry the incarnation: it must be durable before one
	// is made.
	if err := s.writeCheckpoint(st); err != nil {
		return err
	}
	if err := s.loadSegments(st); err != nil {
		return err
	}
	s.journal, err = journal.Open(ctx, journal.Options{
		FS: s.fs, Dir: s.dir, FileSize: s.o.JournalFileSize, Sync: s.o.Sync,
		NextFileID: s.newFileID, OnSeal: s.sealed, OnFatal: s.o.OnFatal, OnSpace: s.onSpace,
		Adopted: func(id model.FileID) bool { return s.segments[id] != nil },
		Settled: func(model.LSN, model.LSN) bool { return s.rebuilt }, // what is missing was given back
		Limits:  s.o.Limits, Incarnation: uint64(s.incarnation), Logger: s.log,
	}, st.From, s.replay)
	if err != nil {
		return err
	}
	if err := s.finishLogs(ctx, st); err != nil {
		return errors.Join(err, s.journal.Close())
	}
	s.keepReserve()
	s.log.Info("store is open", "dir", s.dir, "incarnation", s.incarnation,
		"partitions", len(s.logs), "segments", len(s.segments), "took", s.o.Clock().Sub(start))
	return nil
}

// loadCheckpoint gives the state to start from, with the incarnation counted up,
// and makes the logs that it names.
func (s *Store) loadCheckpoint() (checkpoint.State, error) {
	st, damage, err := checkpoint.Load(s.fs, s.dir)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		st = checkpoint.State{Incarnation: -1}
	case model.ClassOf(err) == model.ClassCorrupt:
		s.log.Error("no copy of the checkpoint can be read; it is built again from the data files. "+
			"Deleted records may be back, and producer state is read from the batches", "dir", s.dir, "err", err)
		s.rebuilt, damage = true, nil
		if st, err = s.rebuildCheckpoint(); err != nil {
			return st, err
		}
	case err != nil:
		return st, err
	}
	for _, d := range damage {
		s.log.Error("one copy of the checkpoint is damaged; it is replaced from the other", "dir", s.dir, "err", d)
	}
	st.Incarnation++
	st.Seq++
	for _, p := range st.Partitions {
		s.Log(p.ID).restore(p)
	}
	return st, nil
}

// restore takes in what the checkpoint says of the log.
func (l *Log) restore(p checkpoint.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start.Store(int64(p.Start))
	l.end.Store(int64(p.Start))
	l.clean = p.Clean
	l.recovered = Recovered{Snapshot: p.Snapshot, UpTo: p.UpTo}
	l.epoch = noEpoch
}

// noEpoch is the leader epoch before the first batch.
const noEpoch = -1

// replay takes in an entry of the journal again.
func (s *Store) replay(loc storage.Located) error {
	e := &loc.Entry
	l := s.known(e.Part)
	switch e.Kind {
	case storage.EntryTrim:
		if l != nil { // retention may have crossed a drop
			l.trim(e.Base)
		}
	case storage.EntryDrop:
		if l != nil {
			l.drop()
			s.forget(l)
		}
	case storage.EntryBatches:
		l = s.Log(e.Part)
		if e.Last < l.End() {
			return nil // a segment holds it already
		}
		if s.rebuilt {
			l.beginAt(e.Base)
		}
		if err := cutBelow(e, l.End()); err != nil {
			return fmt.Errorf("journal file %016x at %d: %s: %w", uint64(e.At.File), e.At.Pos, l.id, err)
		}
		if err := l.note(e.Data); err != nil {
			return fmt.Errorf("journal file %016x at %d: %s: %w", uint64(e.At.File), e.At.Pos, l.id, err)
		}
		l.append(s.extentOf(l, e, crc32.Checksum(e.Data, model.Castagnoli), nil))
	}
	return nil
}

// cutBelow takes from an entry the batches below end: compaction has written them
// to a segment, and the journal has joined them with later ones.
func cutBelow(e *storage.Entry, end model.Offset) error {
	for e.Base < end {
		b, rest, err := model.NextBatch(e.Data)
		if err != nil || b.LastOffset() >= end {
			return err
		}
		e.Data, e.Base = rest, b.LastOffset()+1
		e.At.Pos += int64(len(b))
	}
	return nil
}

// note keeps of data, the log's next batches, what the partition must replay
// after its snapshot.
func (l *Log) note(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(data) > 0 {
		b, rest, err := model.NextBatch(data)
		if err != nil {
			return err
		}
		data = rest
		if b.LastOffset() < l.recovered.UpTo {
			continue
		}
		keep := model.BatchHeaderSize
		switch {
		case b.IsControl():
			keep = len(b)
		case b.ProducerID() == model.NoProducer && b.LeaderEpoch() == l.epoch:
			continue
		}
		l.epoch = b.LeaderEpoch()
		l.recovered.Since = append(l.recovered.Since, model.Batch(append([]byte(nil), b[:keep]...)))
	}
	return nil
}

// finishLogs looks each log over once everything is read.
func (s *Store) finishLogs(ctx context.Context, st checkpoint.State) error {
	for _, d := range s.journal.Damage() {
		for i := range d.Items {
			s.lost(&d, &d.Items[i])
		}
	}
	ends := make(map[model.PartitionID]model.Offset, len(st.Partitions))
	for _, p := range st.Partitions {
		ends[p.ID] = max(p.End, p.UpTo)
	}
	for _, l := range s.all() {
		if err := s.noteSpans(ctx, l); err != nil {
			return err
		}
		l.mu.Lock()
		if end := ends[l.id]; l.End() < end {
			l.damage = append(l.damage, damage{l.End(), end - 1, reasonMissing})
			l.end.Store(int64(end))
		}
		for _, d := range l.damage {
			s.log.Error("stored batches are missing; the range cannot be read, the rest serves",
				"partition", l.id.String(), "first", int64(d.base), "last", int64(d.last), "reason", d.reason)
		}
		l.mu.Unlock()
	}
	return nil
}

// noteSpans keeps of a log's segments what its snapshot does not cover. That is
// nothing, unless there is no snapshot: each checkpoint takes one.
func (s *Store) noteSpans(ctx context.Context, l *Log) error {
	l.mu.Lock()
	from, later := max(l.recovered.UpTo, l.Start()), l.recovered.Since
	end := l.Start()
	if n := len(l.spans); n > 0 {
		end = l.spans[n-1].last + 1
	}
	l.mu.Unlock()
	if from >= end {
		return nil
	}
	l.recovered.Since, l.epoch = nil, noEpoch
	for from < end {
		c, err := l.Read(ctx, from, end, windowBytes, true)
		if err != nil {
			next, ok := nextReadable(err)
			if !ok {
				return err
			}
			from = next
			continue
		}
		for _, data := range c.Data {
			if err := l.note(data); err != nil {
				return err
			}
		}
		from = c.Next
	}
	if len(later) > 0 && !later[0].IsControl() && later[0].ProducerID() == model.NoProducer && later[0].LeaderEpoch() == l.epoch {
		later = later[1:] // it was kept for an epoch that is known now
	}
	l.recovered.Since = append(l.recovered.Since, later...)
	return nil
}

// lost sees to it that the offsets of an entry that the journal cannot read are
// not given out again, even when they were the log's last.
func (s *Store) lost(d *journal.Damage, it *format.Item) {
	if it.Kind != storage.EntryBatches {
		return
	}
	l := s.Log(it.Part)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.End() <= it.Last {
		l.damage = append(l.damage, damage{l.End(), it.Last, d.String()})
		l.end.Store(int64(it.Last) + 1)
		return
	}
	for i := range l.damage {
		if l.damage[i].base <= it.Base && it.Last <= l.damage[i].last {
			l.damage[i].reason = d.String()
		}
	}
}
