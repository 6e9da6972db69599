package ledgers

import (
	"context"
	"hash/maphash"
	"strconv"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// Want is what a member asks for.
type Want struct {
	Records int   // at most
	Bytes   int   // about; the first batch comes whole
	Until   int64 // when the lock ends, in milliseconds
	// WholeBatches rounds Records up to the end of a batch (KIP-1206's
	// batch_optimized).
	WholeBatches bool
}

// Fetched is what a member was given: spans, and the batches that hold them (and
// may hold more).
type Fetched struct {
	Deliveries []ledger.Delivery
	Data       [][]byte
}

// readsPerAcquire bounds how far one Acquire looks through records that are
// settled or in flight.
const readsPerAcquire = 16

// Acquire gives member what is ready, durably: when it returns, a restart knows
// that these records were delivered. It does not wait for records to come; an
// empty answer means that there is nothing now (see Watch).
func (s *Subscription) Acquire(ctx context.Context, member string, w Want) (Fetched, error) {
	s.mu.Lock()
	from := s.l.Start()
	s.mu.Unlock()
	for range readsPerAcquire {
		next, room := s.next(from)
		if room == 0 {
			return Fetched{}, nil
		}
		res, err := s.part.Read(ctx, next, w.Bytes, true, s.isolation())
		if model.ClassOf(err) == model.ClassOutOfRange && next < res.LogStart {
			s.skip(ledger.Span{First: next, Last: res.LogStart - 1})
			from = res.LogStart
			continue
		}
		if err != nil || res.Bytes == 0 {
			return Fetched{}, err
		}
		f, err := s.take(ctx, member, w, next, res)
		if err != nil || len(f.Deliveries) > 0 {
			return f, err
		}
		from = res.Next
	}
	return Fetched{}, nil
}

func (s *Subscription) isolation() partition.Isolation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Isolation
}

func (s *Subscription) next(from model.Offset) (model.Offset, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0, 0
	}
	return s.l.NextReady(max(from, s.l.Start())), s.l.Room()
}

func (s *Subscription) skip(span ledger.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commitLocked(s.l.Skip(span), func(error) {})
}

// take acquires from what was read and waits until that is durable.
func (s *Subscription) take(ctx context.Context, member string, w Want, from model.Offset, res partition.ReadResult) (Fetched, error) {
	batches, err := split(from, res, s.isolation())
	if err != nil {
		return Fetched{}, err
	}
	var f Fetched
	ch := make(chan error, 1)
	s.mu.Lock()
	l := looker{keyed: s.cfg.KeyOrder, delayHeader: s.cfg.DelayHeader, now: s.k.o.Now().UnixMilli()}
	s.mu.Unlock()
	if err := l.look(batches); err != nil {
		return Fetched{}, err
	}
	s.mu.Lock()
	var all ledger.Changes
	m := s.memberLocked(member)
	left := w.Records
	for _, b := range batches {
		if left <= 0 {
			break
		}
		got, changes := s.takeBatchLocked(m, w, b, left)
		all.Deltas, all.Dead = append(all.Deltas, changes.Deltas...), append(all.Dead, changes.Dead...)
		if len(got) > 0 {
			f.Data = append(f.Data, b.batch)
		}
		for _, d := range got {
			left -= int(d.Len())
		}
		f.Deliveries = append(f.Deliveries, got...)
	}
	s.commitLocked(joined(all), func(err error) { ch <- err })
	s.mu.Unlock()
	select {
	case err = <-ch:
	case <-ctx.Done():
		err = context.Cause(ctx) // what was acquired comes back when its lock ends
	}
	if err != nil {
		return Fetched{}, err
	}
	return f, nil
}

func (s *Subscription) takeBatchLocked(m ledger.Member, w Want, b looked, left int) ([]ledger.Delivery, ledger.Changes) {
	if b.skip {
		return nil, s.l.Skip(b.span)
	}
	if w.WholeBatches {
		left = int(b.span.Len())
	}
	var skipped []ledger.Delta
	for _, g := range b.gaps {
		skipped = append(skipped, s.l.Skip(g).Deltas...)
	}
	cands := b.each
	if cands == nil && b.gaps == nil {
		cands = []ledger.Candidate{{Span: b.span}}
	}
	got, ch := s.l.Acquire(m, w.Until, cands, left)
	ch.Deltas = append(skipped, ch.Deltas...)
	return got, ch
}

// looked is a batch as acquiring sees it: a span to be had, or to be skipped
// because no consumer can ever get it.
type looked struct {
	span  ledger.Span
	batch model.Batch
	skip  bool
	each  []ledger.Candidate // one per record, where records were looked at
	gaps  []ledger.Span      // offsets without a record, likewise
}

// split cuts what was read into batches, and finds the gaps, markers and aborted
// records between them.
func split(from model.Offset, res partition.ReadResult, iso partition.Isolation) ([]looked, error) {
	var out []looked
	aborted := map[int64]bool{}
	pending := res.Aborted
	for _, data := range res.Data {
		for len(data) > 0 {
			b, rest, err := model.NextBatch(data)
			if err != nil {
				return nil, &model.Error{Class: model.ClassCorrupt, Op: "acquire", Cause: err}
			}
			data = rest
			if b.LastOffset() < from {
				continue
			}
			if b.BaseOffset() > from {
				out = append(out, looked{span: ledger.Span{First: from, Last: b.BaseOffset() - 1}, skip: true})
			}
			for len(pending) > 0 && pending[0].First <= b.LastOffset() {
				aborted[pending[0].ProducerID] = true
				pending = pending[1:]
			}
			l := looked{span: ledger.Span{First: max(from, b.BaseOffset()), Last: b.LastOffset()}, batch: b}
			switch {
			case b.IsControl():
				l.skip = true
				if m, ok, err := records.ReadMarker(b); err == nil && ok && !m.Commit {
					delete(aborted, b.ProducerID())
				}
			case b.NumRecords() == 0:
				l.skip = true
			case iso == partition.ReadCommitted && b.IsTransactional() && aborted[b.ProducerID()]:
				l.skip = true
			}
			out = append(out, l)
			from = b.LastOffset() + 1
		}
	}
	return out, nil
}

// keySeed makes key hashes of one process; they are never stored.
var keySeed = maphash.MakeSeed()

// KeyHash is the hash under which a ledger knows a record's key.
func KeyHash(key []byte) uint64 { return maphash.Bytes(keySeed, key) }

// looker gives each record of the batches as a candidate of its own, where the
// subscription's order or delays need that.
type looker struct {
	keyed       bool
	delayHeader string
	now         int64 // milliseconds
}

func (l looker) look(batches []looked) error {
	if !l.keyed && l.delayHeader == "" {
		return nil
	}
	for i := range batches {
		b := &batches[i]
		if b.skip {
			continue
		}
		at := b.span.First
		err := eachRecord(b.batch, func(o model.Offset, rec records.Record) error {
			if o < at {
				return nil
			}
			if o > at {
				b.gaps = append(b.gaps, ledger.Span{First: at, Last: o - 1})
			}
			at = o + 1
			c, err := l.candidate(b.batch, o, rec)
			b.each = append(b.each, c)
			return err
		})
		if err != nil {
			return err
		}
		if at <= b.span.Last {
			b.gaps = append(b.gaps, ledger.Span{First: at, Last: b.span.Last})
		}
	}
	return nil
}

func (l looker) candidate(b model.Batch, o model.Offset, rec records.Record) (ledger.Candidate, error) {
	c := ledger.Candidate{Span: ledger.Span{First: o, Last: o}}
	if l.keyed && rec.Key != nil {
		c.Key, c.Keyed = KeyHash(rec.Key), true
	}
	if l.delayHeader == "" || rec.NumHeaders == 0 {
		return c, nil
	}
	headers, err := rec.Headers()
	if err != nil {
		return c, err
	}
	for _, h := range headers {
		if h.Key != l.delayHeader {
			continue
		}
		ts := b.FirstTimestamp() + rec.TimestampDelta
		if b.IsLogAppendTime() {
			ts = b.MaxTimestamp()
		}
		// A delay that cannot be read, or beyond what a time can hold, is none.
		if d, err := strconv.ParseInt(string(h.Value), 10, 64); err == nil && d > 0 && d <= maxDelay && ts+d > l.now {
			c.NotBefore = ts + d
		}
	}
	return c, nil
}

// maxDelay bounds a record's delay: a hundred years, in milliseconds.
const maxDelay = 100 * 365 * 24 * 3600 * 1000

// EachRecord calls f for each record of whole batches, in order.
func EachRecord(data [][]byte, f func(model.Offset, records.Record) error) error {
	for _, buf := range data {
		for len(buf) > 0 {
			b, rest, err := model.NextBatch(buf)
			if err != nil {
				return &model.Error{Class: model.ClassCorrupt, Op: "read records", Cause: err}
			}
			buf = rest
			if b.IsControl() {
				continue
			}
			if err := eachRecord(b, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func eachRecord(b model.Batch, f func(model.Offset, records.Record) error) error {
	r, err := records.Open(b, 0)
	if err != nil {
		return err
	}
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		if err := f(b.BaseOffset()+model.Offset(rec.OffsetDelta), rec); err != nil {
			return err
		}
	}
}
