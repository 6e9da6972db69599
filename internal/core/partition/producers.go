package partition

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

// rememberedBatches is how many batches per producer are known for retries
// (Kafka's number; clients keep at most five requests in flight).
const rememberedBatches = 5

// maxProducers bounds the producer states of one partition; the longest idle
// ones without an open transaction go first.
const maxProducers = 100_000

// noEpoch is the epoch of a producer whose state says nothing of epochs.
const noEpoch int16 = -1

// written is one remembered batch of a producer.
type written struct {
	firstSeq, lastSeq int32
	base, last        model.Offset
}

// producer is what a partition knows of one producer id.
//
// Invariants: batches are of the current epoch, oldest first; txnFirst is -1 or
// the first offset of the producer's open transaction in this partition.
type producer struct {
	epoch            int16
	coordinatorEpoch int32
	batches          []written // at most rememberedBatches
	txnFirst         model.Offset
	seen             int64 // milliseconds: timestamp of the newest batch
}

func (p *producer) lastSeq() int32 {
	if len(p.batches) == 0 {
		return -1
	}
	return p.batches[len(p.batches)-1].lastSeq
}

// producers is the machine behind idempotence (KIP-98): pure, replayable.
type producers map[int64]*producer

// lastSequence is the sequence of b's last record; sequences wrap to 0.
func lastSequence(b model.Batch) int32 {
	return addSequence(b.BaseSequence(), b.LastOffsetDelta())
}

func addSequence(seq, n int32) int32 {
	if seq > math.MaxInt32-n {
		return n - (math.MaxInt32 - seq) - 1
	}
	return seq + n
}

func followsSequence(last, next int32) bool {
	return next == last+1 || (next == 0 && last == math.MaxInt32)
}

// check decides on a client's batch. dup is the batch it repeats, if it does.
func (ps producers) check(b model.Batch, txnV2, enlisted bool) (dup *written, err error) {
	if b.ProducerID() < 0 {
		return nil, nil
	}
	p := ps[b.ProducerID()]
	first, last := b.BaseSequence(), lastSequence(b)
	if p == nil {
		if err := ps.checkTxn(b, enlisted); err != nil {
			return nil, err
		}
		if txnV2 && first != 0 {
			return nil, outOfOrder(b, "the first sequence of a producer without state must be 0")
		}
		return nil, nil
	}
	if b.ProducerEpoch() == p.epoch {
		for i := range p.batches {
			if w := &p.batches[i]; w.firstSeq == first && w.lastSeq == last {
				return w, nil
			}
		}
	}
	if err := ps.checkTxn(b, enlisted); err != nil {
		return nil, err
	}
	if p.txnFirst >= 0 && !b.IsTransactional() {
		return nil, &model.Error{Class: model.ClassTxnState, Detail: fmt.Sprintf("producer %d has an open transaction here and sent a batch outside of it", b.ProducerID())}
	}
	switch {
	case b.ProducerEpoch() != p.epoch:
		if first != 0 && p.epoch != noEpoch {
			return nil, outOfOrder(b, fmt.Sprintf("epoch %d is new and must start at sequence 0", b.ProducerEpoch()))
		}
	case !followsSequence(p.lastSeq(), first):
		return nil, outOfOrder(b, fmt.Sprintf("the last sequence here is %d", p.lastSeq()))
	}
	return nil, nil
}

// checkTxn refuses a stale epoch, and a batch that would begin a transaction
// without the coordinator's word for it.
func (ps producers) checkTxn(b model.Batch, enlisted bool) error {
	p := ps[b.ProducerID()]
	if p != nil && b.ProducerEpoch() < p.epoch {
		return fenced(b, p.epoch)
	}
	open := p != nil && p.txnFirst >= 0 && p.epoch == b.ProducerEpoch()
	if b.IsTransactional() && !open && !enlisted {
		return ErrNotEnlisted
	}
	return nil
}

// apply takes in a batch that was accepted at base, data or marker. For an abort
// or commit marker it returns the transaction that ended, if one was open.
func (ps producers) apply(b model.Batch, base model.Offset, marker *markerInfo) (ended *openTxn) {
	id := b.ProducerID()
	if id < 0 {
		return nil
	}
	p := ps[id]
	if p == nil {
		ps.makeRoom()
		p = &producer{epoch: noEpoch, coordinatorEpoch: -1, txnFirst: -1}
		ps[id] = p
	}
	if b.ProducerEpoch() != p.epoch {
		p.epoch = b.ProducerEpoch()
		p.batches = nil
	}
	p.seen = max(p.seen, b.MaxTimestamp())
	if marker != nil {
		p.coordinatorEpoch = max(p.coordinatorEpoch, marker.coordinatorEpoch)
		if p.txnFirst >= 0 {
			ended = &openTxn{producerID: id, first: p.txnFirst}
			p.txnFirst = -1
		}
		return ended
	}
	if b.BaseSequence() >= 0 {
		if len(p.batches) == rememberedBatches {
			p.batches = append(p.batches[:0], p.batches[1:]...)
		}
		p.batches = append(p.batches, written{
			firstSeq: b.BaseSequence(), lastSeq: lastSequence(b),
			base: base, last: base + model.Offset(b.LastOffsetDelta()),
		})
	}
	if b.IsTransactional() && p.txnFirst < 0 {
		p.txnFirst = base
	}
	return nil
}

// checkMarker refuses markers of epochs that are over. Where each end raises the
// epoch, a marker of the epoch of the open transaction belongs to the one before.
func (ps producers) checkMarker(b model.Batch, m markerInfo, txnV2 bool) error {
	p := ps[b.ProducerID()]
	if p == nil {
		return nil
	}
	if b.ProducerEpoch() < p.epoch || (txnV2 && p.txnFirst >= 0 && b.ProducerEpoch() == p.epoch) {
		return fenced(b, p.epoch)
	}
	if m.coordinatorEpoch < p.coordinatorEpoch {
		return &model.Error{Class: model.ClassFenced, Detail: fmt.Sprintf("coordinator epoch %d is over, %d is known", m.coordinatorEpoch, p.coordinatorEpoch)}
	}
	return nil
}

// expire forgets producers without an open transaction whose newest batch is
// older than before (milliseconds; producer.id.expiration.ms).
func (ps producers) expire(before int64) {
	for id, p := range ps {
		if p.txnFirst < 0 && p.seen < before {
			delete(ps, id)
		}
	}
}

// Producer is what a partition knows of one producer (DescribeProducers, KIP-664).
type Producer struct {
	ID                      int64
	Epoch                   int16
	LastSequence            int32 // -1: none
	LastTimestamp           int64 // milliseconds
	CoordinatorEpoch        int32 // -1: no marker yet
	CurrentTransactionStart model.Offset
}

// Producers lists the producers by id. CurrentTransactionStart is -1 for those
// without an open transaction here.
func (p *Partition) Producers() []Producer {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Producer, 0, len(p.state.producers))
	for id, s := range p.state.producers {
		out = append(out, Producer{id, s.epoch, s.lastSeq(), s.seen, s.coordinatorEpoch, s.txnFirst})
	}
	slices.SortFunc(out, func(a, b Producer) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// makeRoom forgets the longest idle tenth when the bound is reached.
func (ps producers) makeRoom() {
	if len(ps) < maxProducers {
		return
	}
	oldest, newest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, p := range ps {
		oldest, newest = min(oldest, p.seen), max(newest, p.seen)
	}
	for cut := oldest + (newest-oldest)/10 + 1; len(ps) >= maxProducers && cut <= newest+1; cut += (newest-oldest)/10 + 1 {
		ps.expire(cut)
	}
}

func fenced(b model.Batch, epoch int16) error {
	return &model.Error{Class: model.ClassFenced, Detail: fmt.Sprintf("producer %d has epoch %d, a newer one with epoch %d took over", b.ProducerID(), b.ProducerEpoch(), epoch)}
}

func outOfOrder(b model.Batch, why string) error {
	return &model.Error{Class: model.ClassOutOfOrder, Detail: fmt.Sprintf("producer %d, epoch %d, sent sequence %d: %s", b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), why)}
}
