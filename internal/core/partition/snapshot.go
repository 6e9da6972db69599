package partition

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

// snapshotVersion 1: all integers are varints, in the order that encode writes
// them (docs/formats/partition-snapshot.md). The checkpoint around it carries the
// checksum.
const snapshotVersion = 1

// epochStart says from which offset on a leader epoch appended.
type epochStart struct {
	epoch int32
	start model.Offset
}

// state is everything of a partition that replaying its batches gives back.
type state struct {
	producers producers
	txns      txns
	epochs    []epochStart // both fields strictly ascending
}

func newState() state { return state{producers: producers{}} }

// enterEpoch notes that epoch appends from start on. An epoch that never
// appended leaves no trace.
func (s *state) enterEpoch(epoch int32, start model.Offset) {
	n := len(s.epochs)
	if n > 0 && s.epochs[n-1].epoch >= epoch {
		return
	}
	if n > 0 && s.epochs[n-1].start >= start {
		s.epochs = s.epochs[:n-1]
	}
	s.epochs = append(s.epochs, epochStart{epoch, start})
}

// endOf answers KIP-320's question: the largest epoch at or below asked, and
// where it ends. end is the log's end.
func (s *state) endOf(asked int32, end model.Offset) (int32, model.Offset) {
	i, found := slices.BinarySearchFunc(s.epochs, asked, func(e epochStart, a int32) int { return int(e.epoch) - int(a) })
	switch {
	case asked < 0 || len(s.epochs) == 0 || (!found && i == len(s.epochs)):
		return -1, -1
	case found && i == len(s.epochs)-1:
		return asked, end
	case found:
		return asked, s.epochs[i+1].start
	case i == 0:
		return asked, s.epochs[0].start
	}
	return s.epochs[i-1].epoch, s.epochs[i].start
}

// replay takes in a batch as it was appended: its header, or all of a control batch.
func (s *state) replay(b model.Batch) error {
	s.enterEpoch(b.LeaderEpoch(), b.BaseOffset())
	m, err := readMarkerInfo(b)
	if err != nil {
		return err
	}
	s.apply(b, b.BaseOffset(), m)
	return nil
}

// apply takes in a batch at base.
func (s *state) apply(b model.Batch, base model.Offset, m *markerInfo) {
	if b.IsControl() && m == nil {
		return
	}
	ended := s.producers.apply(b, base, m)
	if ended != nil {
		s.txns.end(*ended, base, m.commit)
		return
	}
	if m == nil && b.IsTransactional() && b.ProducerID() >= 0 && s.producers[b.ProducerID()].txnFirst == base {
		s.txns.begin(b.ProducerID(), base)
	}
}

func (s *state) encode() []byte {
	out := []byte{snapshotVersion}
	put := func(vs ...int64) {
		for _, v := range vs {
			out = binary.AppendVarint(out, v)
		}
	}
	put(int64(len(s.epochs)))
	for _, e := range s.epochs {
		put(int64(e.epoch), int64(e.start))
	}
	put(int64(len(s.producers)))
	for id, p := range s.producers {
		put(id, int64(p.epoch), int64(p.coordinatorEpoch), int64(p.txnFirst), p.seen, int64(len(p.batches)))
		for _, w := range p.batches {
			put(int64(w.firstSeq), int64(w.lastSeq), int64(w.base), int64(w.last))
		}
	}
	put(int64(len(s.txns.aborted)))
	for _, a := range s.txns.aborted {
		put(a.producerID, int64(a.first), int64(a.last), int64(a.stable))
	}
	return out
}

// decodeState reads what encode wrote. Open transactions come from the producers.
func decodeState(buf []byte) (state, error) {
	s := newState()
	if len(buf) == 0 || buf[0] != snapshotVersion {
		return s, corruptSnapshot("version")
	}
	d := varints{buf: buf[1:]}
	for range d.count(2) {
		s.epochs = append(s.epochs, epochStart{int32(d.next()), model.Offset(d.next())})
	}
	for range d.count(6) {
		id := d.next()
		p := &producer{epoch: int16(d.next()), coordinatorEpoch: int32(d.next()), txnFirst: model.Offset(d.next()), seen: d.next()}
		for range d.count(4) {
			p.batches = append(p.batches, written{int32(d.next()), int32(d.next()), model.Offset(d.next()), model.Offset(d.next())})
		}
		if len(p.batches) > rememberedBatches {
			return s, corruptSnapshot("remembered batches")
		}
		if p.txnFirst >= 0 {
			s.txns.open = append(s.txns.open, openTxn{id, p.txnFirst})
		}
		s.producers[id] = p
	}
	for range d.count(4) {
		s.txns.aborted = append(s.txns.aborted, abortedTxn{d.next(), model.Offset(d.next()), model.Offset(d.next()), model.Offset(d.next())})
	}
	if d.bad || len(d.buf) != 0 {
		return s, corruptSnapshot("length")
	}
	slices.SortFunc(s.txns.open, func(a, b openTxn) int { return int(max(-1, min(1, a.first-b.first))) })
	return s, nil
}

// varints reads varints and remembers whether one was missing.
type varints struct {
	buf []byte
	bad bool
}

func (d *varints) next() int64 {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.bad, d.buf = true, nil
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

// count reads a number of elements that take at least width bytes each.
func (d *varints) count(width int) int {
	n := d.next()
	if n < 0 || n > int64(len(d.buf)/width) {
		d.bad, d.buf = true, nil
		return 0
	}
	return int(n)
}

func corruptSnapshot(what string) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "read partition snapshot", Detail: fmt.Sprintf("bad %s", what)}
}
