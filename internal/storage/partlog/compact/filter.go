package compact

import (
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// Clock is the time of a run, in milliseconds.
type Clock struct {
	Now             int64
	DeleteRetention int64 // delete.retention.ms
}

// Filter is the third pass. Batches come in offset order, from the log's start.
type Filter struct {
	plan  *Plan
	clock Clock
	// keeps says that a producer's sequence is known by its batch that ends at
	// last, so that it must stay, empty if need be.
	keeps func(producer int64, last model.Offset) bool
	// held are the producers of whose transaction some data was kept since
	// their last marker.
	held  map[int64]bool
	spare model.Batch // the last batch, if it was dropped

	Stats Stats
}

// Stats count what went in, what became of it, and what must be found again in
// the output.
type Stats struct {
	BatchesIn, RecordsIn   int64
	BatchesOut, RecordsOut int64
	Superseded             int64 // a newer record of the key is there
	Aborted                int64 // records of aborted transactions
	Expired                int64 // tombstones and markers whose time is over
	Keyless                int64
	// Horizon is the earliest delete horizon in the output, 0 if there is none.
	Horizon int64
}

// Balanced reports that every record that went in is accounted for.
func (s Stats) Balanced() bool {
	return s.RecordsIn == s.RecordsOut+s.Superseded+s.Aborted+s.Expired+s.Keyless
}

// NewFilter starts the third pass of a plan. keeps may be nil.
func NewFilter(p *Plan, c Clock, keeps func(producer int64, last model.Offset) bool) *Filter {
	if keeps == nil {
		keeps = func(int64, model.Offset) bool { return false }
	}
	return &Filter{plan: p, clock: c, keeps: keeps, held: make(map[int64]bool)}
}

// Next gives what is kept of b: b itself, another batch of the same offsets, or
// nil. The result may share b's bytes.
func (f *Filter) Next(b model.Batch) (model.Batch, error) {
	f.spare = nil
	f.Stats.BatchesIn++
	f.Stats.RecordsIn += int64(b.NumRecords())
	out, err := f.decide(b)
	if err != nil {
		return nil, fmt.Errorf("batch at %d: %w", b.BaseOffset(), err)
	}
	if out == nil && b.ProducerID() >= 0 && !b.IsControl() && f.keeps(b.ProducerID(), b.LastOffset()) {
		out = empty(b)
	}
	if out == nil {
		f.spare = b
		return nil, nil
	}
	f.count(out)
	return out, nil
}

// Last gives, after the last Next, the last batch without its records if it was
// dropped: a reader must find the end of what was compacted.
func (f *Filter) Last() model.Batch {
	if f.spare == nil {
		return nil
	}
	out := empty(f.spare)
	f.spare = nil
	f.count(out)
	return out
}

func (f *Filter) count(out model.Batch) {
	f.Stats.BatchesOut++
	f.Stats.RecordsOut += int64(out.NumRecords())
	if h := out.FirstTimestamp(); out.HasDeleteHorizon() && (f.Stats.Horizon == 0 || h < f.Stats.Horizon) {
		f.Stats.Horizon = h
	}
}

func (f *Filter) decide(b model.Batch) (model.Batch, error) {
	switch {
	case b.BaseOffset() >= f.plan.cut:
		return b, nil
	case b.NumRecords() == 0:
		return nil, nil // kept again only for its sequence
	case b.IsControl():
		return f.control(b)
	case f.plan.isAborted(b):
		f.Stats.Aborted += int64(b.NumRecords())
		return nil, nil
	}
	return f.data(b)
}

// control keeps a marker while data of its transaction is there, and for the
// delete retention after that.
func (f *Filter) control(b model.Batch) (model.Batch, error) {
	held := f.held[b.ProducerID()]
	delete(f.held, b.ProducerID())
	if held {
		return b, nil
	}
	if b.HasDeleteHorizon() {
		if b.FirstTimestamp() <= f.clock.Now {
			f.Stats.Expired += int64(b.NumRecords())
			return nil, nil
		}
		return b, nil
	}
	return f.rebuild(b, func(records.Record) bool { return true }, true)
}

// data keeps the newest record of each key.
func (f *Filter) data(b model.Batch) (model.Batch, error) {
	over := b.HasDeleteHorizon() && b.FirstTimestamp() <= f.clock.Now
	kept, tombstones := 0, 0
	keep := func(r records.Record) bool {
		switch {
		case r.Key == nil:
			f.Stats.Keyless++
		case f.plan.keys.Newest(r.Key) > b.BaseOffset()+model.Offset(r.OffsetDelta):
			f.Stats.Superseded++
		case r.Value == nil && over:
			f.Stats.Expired++
		default:
			return true
		}
		return false
	}
	var verdicts []bool
	err := eachRecord(b, func(r records.Record) error {
		k := keep(r)
		verdicts = append(verdicts, k)
		if k {
			kept++
			if r.Value == nil {
				tombstones++
			}
		}
		return nil
	})
	if err != nil || kept == 0 {
		return nil, err
	}
	if b.IsTransactional() {
		f.held[b.ProducerID()] = true
	}
	horizon := tombstones > 0 && !b.HasDeleteHorizon()
	if kept == int(b.NumRecords()) && !horizon {
		return b, nil
	}
	i := -1
	return f.rebuild(b, func(records.Record) bool { i++; return verdicts[i] }, horizon)
}

// rebuild makes a batch of b's records that keep wants, with all that b's header
// says, and with a delete horizon if asked to.
func (f *Filter) rebuild(b model.Batch, keep func(records.Record) bool, horizon bool) (model.Batch, error) {
	first := b.FirstTimestamp()
	if horizon {
		first = f.clock.Now + f.clock.DeleteRetention
	}
	w := records.NewBuilder(records.Meta{
		FirstTimestamp: first, Compression: b.Compression(), Transactional: b.IsTransactional(), Control: b.IsControl(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
	})
	maxTs := int64(-1)
	err := eachRecord(b, func(r records.Record) error {
		if !keep(r) {
			return nil
		}
		ts := b.FirstTimestamp() + r.TimestampDelta
		maxTs = max(maxTs, ts)
		r.TimestampDelta = ts - first
		w.AddRecord(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out, err := w.Build(b.LastOffsetDelta())
	if err != nil {
		return nil, err
	}
	if b.IsLogAppendTime() {
		maxTs = b.MaxTimestamp()
	}
	return inherit(out, b, horizon || b.HasDeleteHorizon(), maxTs), nil
}

// empty gives b without its records.
func empty(b model.Batch) model.Batch {
	w := records.NewBuilder(records.Meta{
		FirstTimestamp: b.FirstTimestamp(), Transactional: b.IsTransactional(), Control: b.IsControl(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
	})
	out, err := w.Build(b.LastOffsetDelta())
	if err != nil {
		panic(err) // an uncompressed batch cannot fail to build
	}
	return inherit(out, b, false, -1)
}

// inherit gives out what the builder does not know of b.
func inherit(out, b model.Batch, horizon bool, maxTs int64) model.Batch {
	out.SetBaseOffset(b.BaseOffset())
	out.SetLeaderEpoch(b.LeaderEpoch())
	out.SetMaxTimestamp(maxTs)
	out.SetTimeFlags(b.IsLogAppendTime(), horizon)
	out.SealCRC()
	return out
}
