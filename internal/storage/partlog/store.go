package partlog

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Store owns everything on disk: journal, segments, checkpoint. All methods may
// be called from any goroutine.
type Store struct {
	// immutable
	o           Options
	fs          vfs.FS
	dir         string
	log         *slog.Logger
	lock        io.Closer
	incarnation int32
	rebuilt     bool // no checkpoint could be read
	journal     *journal.Journal
	files       *datafile.Set
	blocks      *datafile.Blocks
	recent      datafile.Recent

	nextFile atomic.Uint32
	stats    counters

	tail    tail         // the committer's
	current *journalFile // the committer's: where the newest entries lie

	mu           sync.RWMutex
	logs         map[model.PartitionID]*Log
	journalFiles map[model.FileID]*journalFile // not settled yet
	segments     map[model.FileID]*segment
	closed       bool

	keeper keeper
}

// Log gives the log of a partition, new and empty if there is none.
func (s *Store) Log(id model.PartitionID) *Log {
	if l := s.known(id); l != nil {
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[id]
	if l == nil {
		l = &Log{id: id, store: s, epoch: noEpoch}
		s.logs[id] = l
	}
	return l
}

// known gives the log of a partition, nil if there is none.
func (s *Store) known(id model.PartitionID) *Log {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.logs[id]
}

// all lists the logs.
func (s *Store) all() []*Log {
	s.mu.RLock()
	defer s.mu.RUnlock()
	logs := make([]*Log, 0, len(s.logs))
	for _, l := range s.logs {
		logs = append(logs, l)
	}
	return logs
}

// Append puts a group in line (storage.WAL.Append). When the group is durable the
// logs of its entries are extended first (so that reads see them), then Done runs.
// Besides the journal's reasons it refuses with ClassOverloaded when the background
// work is very far behind.
func (s *Store) Append(g *storage.Group) error {
	if !g.Essential && s.overloaded() {
		return errOverloaded
	}
	p := &pending{store: s, group: g, done: g.Done}
	p.logs, p.crcs = p.one.logs[:0], p.one.crcs[:0]
	for i := range g.Entries {
		e := &g.Entries[i]
		p.logs = append(p.logs, s.logFor(e))
		p.crcs = append(p.crcs, crc32.Checksum(e.Data, model.Castagnoli))
	}
	g.Done = p.finish
	if err := s.journal.Append(g); err != nil {
		g.Done = p.done
		return err
	}
	return nil
}

// logFor is the log of an entry; nil for a trim or drop of a log that is not there
// any more, which retention may ask for when it crosses a drop.
func (s *Store) logFor(e *storage.Entry) *Log {
	if e.Kind == storage.EntryBatches {
		return s.Log(e.Part)
	}
	return s.known(e.Part)
}

// pending is a group on its way through the journal.
type pending struct {
	store *Store
	group *storage.Group
	done  func(model.LSN, error)
	logs  []*Log
	crcs  []uint32
	one   struct { // room for the common group of one entry
		logs [1]*Log
		crcs [1]uint32
	}
}

// finish runs on the committer's goroutine.
func (p *pending) finish(lsn model.LSN, err error) {
	if err == nil {
		for i := range p.group.Entries {
			p.store.apply(p.logs[i], &p.group.Entries[i], p.crcs[i])
		}
	}
	p.done(lsn, err)
}

// apply makes a durable entry part of its log.
func (s *Store) apply(l *Log, e *storage.Entry, crc uint32) {
	if l == nil {
		return
	}
	switch e.Kind {
	case storage.EntryTrim:
		if notify := l.trim(e.Base); notify != nil {
			notify(e.Base)
		}
	case storage.EntryDrop:
		l.drop()
		s.forget(l)
	case storage.EntryBatches:
		sl := &slot{log: l, data: e.Data}
		l.append(s.extentOf(l, e, crc, sl))
		s.tail.push(sl, len(e.Data))
	}
}

// extentOf places an entry in its journal file.
func (s *Store) extentOf(l *Log, e *storage.Entry, crc uint32, sl *slot) extent {
	jf := s.current
	if jf == nil || jf.file.ID != e.At.File {
		jf = s.journalFile(e.At.File)
		s.current = jf
	}
	if l.lastFile != jf {
		l.lastFile, l.lastPos = jf, 0
		jf.logs = append(jf.logs, l)
	}
	if e.At.Pos != l.lastPos {
		jf.runs++
	}
	l.lastPos = e.At.Pos + int64(len(e.Data))
	jf.entries++
	jf.bytes += int64(len(e.Data))
	return extent{
		in: jf, slot: sl, base: e.Base, last: e.Last, pos: e.At.Pos,
		maxTs: e.MaxTimestamp, size: uint32(len(e.Data)), crc: crc,
	}
}

// journalFile gives the journal file of an id, new if need be.
func (s *Store) journalFile(id model.FileID) *journalFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	jf := s.journalFiles[id]
	if jf == nil {
		jf = &journalFile{file: s.files.Add(id, s.path(id, format.ExtData))}
		s.journalFiles[id] = jf
	}
	return jf
}

// forget takes a dropped log out of the table.
func (s *Store) forget(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[l.id] == l {
		delete(s.logs, l.id)
	}
}

// path is where a file of this id and extension lies.
func (s *Store) path(id model.FileID, ext string) string {
	return path.Join(s.dir, format.FileName(id, ext))
}

// newFileID gives an id that no start of this directory has used: the start's
// number in the upper half, a counter in the lower.
func (s *Store) newFileID() model.FileID {
	return model.FileID(uint64(uint32(s.incarnation))<<32 | uint64(s.nextFile.Add(1)))
}

// Barrier waits until everything appended before is durable.
func (s *Store) Barrier(ctx context.Context) error { return s.journal.Barrier(ctx) }

// Incarnation counts the starts of this data directory, from 0.
func (s *Store) Incarnation() int32 { return s.incarnation }

// Retain keeps only the partitions for which keep says yes; the catalogue calls
// it once after start, so that what a crash left of deleted topics goes.
func (s *Store) Retain(keep func(model.PartitionID) bool) {
	g := &storage.Group{Essential: true, Done: func(_ model.LSN, err error) {
		if err != nil {
			s.log.Error("dropping what is left of deleted topics", "err", err)
		}
	}}
	for _, l := range s.all() {
		if !keep(l.id) {
			g.Entries = append(g.Entries, storage.Entry{Kind: storage.EntryDrop, Part: l.id, MaxTimestamp: -1})
		}
	}
	if len(g.Entries) == 0 {
		return
	}
	s.log.Info("dropping what is left of deleted topics", "partitions", len(g.Entries))
	if err := s.Append(g); err != nil {
		g.Done(0, err)
	}
}

// Close stops the background work, writes a checkpoint and closes the files.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.stopKeeper()
	err := s.lastRound()
	err = errors.Join(err, s.journal.Close())
	s.files.CloseIdle()
	if err = errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
