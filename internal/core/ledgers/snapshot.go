package ledgers

import (
	"context"
	"fmt"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// A snapshot is due when the deltas since the last one weigh twice as much as it
// did, so that writing snapshots costs a constant share of writing deltas; small
// ledgers wait for minDeltaBytes.
const minDeltaBytes = 256 << 10

// staleRecords is how far a quiet ledger's oldest needed record may fall behind
// the end of the ledgers' log before it is written anew, so that the log can be
// trimmed; trimRecords is how much must be to gain for a trim.
const (
	staleRecords = 100_000
	trimRecords  = 10_000
)

// snapshotIfDueLocked asks for a snapshot when the deltas have grown.
func (s *Subscription) snapshotIfDueLocked() {
	if s.writing || s.deltas < max(minDeltaBytes, 2*s.size) {
		return
	}
	s.askSnapshotLocked()
}

func (s *Subscription) askSnapshotLocked() {
	select {
	case s.k.snaps <- s:
		s.writing = true
	default: // many are under way; the next change asks again
	}
}

// snapshots writes the snapshots that are asked for and trims the logs.
func (k *Keeper) snapshots(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-k.snaps:
			s.snapshot()
			k.trim(ctx, s.log)
		}
	}
}

// snapshot encodes the state outside of the lock; deltas that come meanwhile have
// higher numbers than the snapshot and are replayed on top of it.
func (s *Subscription) snapshot() {
	s.mu.Lock()
	frozen, seq := s.l.Freeze(), s.seq
	s.mu.Unlock()
	snap := frozen.Snapshot()
	done := make(chan error, 1)
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return
	}
	s.deltas = 0
	s.writeSnapshotLocked(seq, snap, func(err error) { done <- err })
	s.mu.Unlock()
	<-done //nolint:errcheck // the journal always answers; with an error only when it stops
}

// writeSnapshotLocked appends a snapshot's parts. Once they are durable the log
// before the first of them is not needed for this ledger.
func (s *Subscription) writeSnapshotLocked(seq int64, snap ledger.Snapshot, done func(error)) {
	parts := encodeSnapshot(seq, snap)
	first := s.log.Partition().Watermarks().HighWatermark // at or below where the parts will lie
	s.size = 0
	for i, v := range parts {
		s.size += len(v)
		applied := func(error) {}
		if i == len(parts)-1 {
			applied = func(err error) {
				s.mu.Lock()
				if s.writing = false; err == nil {
					s.needed = max(s.needed, first)
				}
				s.mu.Unlock()
				done(err)
			}
		}
		if err := s.log.Append([]statelog.Record{{Key: s.key.encode(), Value: v}}, applied); err != nil {
			s.writing = false
			done(err)
			return
		}
	}
}

// trim drops what no ledger of the log needs any more, and asks the quiet ones
// that hold it back for a new snapshot.
func (k *Keeper) trim(ctx context.Context, log *statelog.Log) {
	w := log.Partition().Watermarks()
	needed := w.HighWatermark
	k.mu.Lock()
	var quiet []*Subscription
	for key, h := range k.held {
		if k.logs[k.shard(key)] == log {
			needed = min(needed, h.needed)
		}
	}
	for _, s := range k.subs {
		if s.log == log {
			quiet = append(quiet, s)
		}
	}
	k.mu.Unlock()
	for _, s := range quiet {
		s.mu.Lock()
		if s.needed >= 0 {
			needed = min(needed, s.needed)
		} else {
			needed = w.LogStart
		}
		if !s.writing && !s.gone && s.needed < w.HighWatermark-staleRecords {
			s.askSnapshotLocked()
		}
		s.mu.Unlock()
	}
	if needed-w.LogStart < trimRecords {
		return
	}
	if _, err := log.Partition().DeleteRecords(ctx, needed); err != nil && ctx.Err() == nil {
		k.o.Logger.Warn("ledger log was not trimmed", "partition", log.Partition().ID().String(), "err", err)
	}
}

// replay gathers what one log says of its ledgers.
func (k *Keeper) replay(ctx context.Context, log *statelog.Log) error {
	open := map[Key][]part{} // parts of snapshots that are not whole yet
	return log.Replay(ctx, func(e statelog.Entry) error {
		if e.Marker != nil {
			return nil
		}
		key, err := decodeKey(e.Key)
		if err != nil {
			return fmt.Errorf("offset %d: %w", e.Offset, err)
		}
		if e.Value == nil {
			delete(k.held, key)
			delete(open, key)
			return nil
		}
		p, err := decodeValue(e.Value)
		if err != nil {
			return fmt.Errorf("offset %d: %w", e.Offset, err)
		}
		h, known := k.held[key]
		if p.kind == kindDelta {
			if known {
				h.deltas = append(h.deltas, p.deltas...)
				h.seqs = append(h.seqs, seqEnd{p.seq, len(h.deltas)})
				h.seq, h.bytes = p.seq, h.bytes+len(e.Value)
				k.held[key] = h
			}
			return nil
		}
		if p.index == 0 {
			open[key] = nil
			p.at = e.Offset
		}
		open[key] = append(open[key], p)
		if len(open[key]) == p.of {
			k.held[key] = h.with(open[key])
			delete(open, key)
		}
		return nil
	})
}

// with gives the ledger after a whole snapshot: only deltas that it does not
// cover are kept.
func (h held) with(parts []part) held {
	next := held{seq: max(h.seq, parts[0].seq), needed: parts[0].at}
	next.snap.Start, next.snap.End = parts[0].start, parts[0].end
	for _, p := range parts {
		next.snap.Deltas = append(next.snap.Deltas, p.deltas...)
	}
	from := 0
	for i, q := range h.seqs {
		if q.seq <= parts[0].seq {
			from = q.end
			continue
		}
		next.seqs = append(next.seqs, seqEnd{q.seq, q.end - from})
		if i == len(h.seqs)-1 {
			next.deltas = append(next.deltas, h.deltas[from:]...)
		}
	}
	return next
}

// rekey reads the keys of delayed records, which hold them.
func (s *Subscription) rekey(span ledger.Span) error {
	for at := span.First; at <= span.Last; {
		res, err := s.part.Read(context.Background(), at, 4<<20, true, partition.ReadUncommitted)
		if err != nil || res.Bytes == 0 {
			return err
		}
		err = EachRecord(res.Data, func(o model.Offset, rec records.Record) error {
			if o >= span.First && o <= span.Last && rec.Key != nil {
				s.l.Rekey(o, KeyHash(rec.Key))
			}
			return nil
		})
		if err != nil {
			return err
		}
		at = res.Next
	}
	return nil
}

// planNewLocked plans the first alarm of a ledger that is being opened; the
// keeper's lock is held too.
func (s *Subscription) planNewLocked(k *Keeper) {
	if at, ok := s.l.NextAlarm(); ok {
		s.alarm = at
		k.planLocked(at, s)
	}
}
