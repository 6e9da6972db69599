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

// readBytes bounds one read, about: a member wants so many records, and more
// bytes than hold those would be read for nothing.
const readBytes = 1 << 20

// Acquire gives member what is ready, durably: when it returns, a restart knows
// that these records were delivered. It does not wait for records to come; an
// empty answer means that there is nothing now (see Watch).
func (s *Subscription) Acquire(ctx context.Context, member string, w Want) (Fetched, error) {
	s.mu.Lock()
	from := s.l.Start()
	mine := !s.cfg.SingleActive || s.active == "" || s.active == member
	if mine && s.cfg.SingleActive {
		s.active = member
	}
	s.mu.Unlock()
	if !mine {
		return Fetched{}, nil
	}
	for range readsPerAcquire {
		next, room := s.next(from)
		if room == 0 {
			return Fetched{}, nil
		}
		res, err := s.part.Read(ctx, next, min(w.Bytes, readBytes), true, s.isolation())
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
	if err := s.look(batches); err != nil {
		return Fetched{}, err
	}
	ch := make(chan error, 1)
	s.mu.Lock()
	var all ledger.Changes
	m := s.memberLocked(member)
	left := w.Records
	for i := range batches {
		if left <= 0 {
			break
		}
		b := &batches[i]
		var changes ledger.Changes
		b.got, changes = s.takeBatchLocked(m, w, b, left)
		all.Deltas, all.Dead = append(all.Deltas, changes.Deltas...), append(all.Dead, changes.Dead...)
		left -= b.taken()
	}
	s.commitLocked(joined(all), func(err error) { ch <- err })
	s.mu.Unlock()
	f, err := gathered(batches) // while the deltas are on their way to the disk
	if err != nil {
		return Fetched{}, err
	}
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

// gathered puts together what was acquired. Of a batch that is mostly not, only
// the acquired records go out.
func gathered(batches []looked) (f Fetched, err error) {
	for i := range batches {
		b := &batches[i]
		n := b.taken()
		if n == 0 {
			continue
		}
		f.Deliveries = append(f.Deliveries, b.got...)
		data := b.batch
		if 2*n < int(data.NumRecords()) {
			next := 0
			data, err = records.Filter(data, 0, func(r records.Record) bool {
				o := b.batch.BaseOffset() + model.Offset(r.OffsetDelta)
				for next < len(b.got) && b.got[next].Last < o {
					next++
				}
				return next < len(b.got) && b.got[next].First <= o
			})
			if err != nil {
				return f, err
			}
		}
		f.Data = append(f.Data, data)
	}
	return f, nil
}

func (s *Subscription) takeBatchLocked(m ledger.Member, w Want, b *looked, left int) ([]ledger.Delivery, ledger.Changes) {
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
	if cands == nil {
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
	got   []ledger.Delivery
}

// taken counts the records that were acquired.
func (b *looked) taken() (n int) {
	for _, d := range b.got {
		n += int(d.Len())
	}
	return n
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

// looker turns records into candidates, where the subscription's order or delays
// need to know them.
type looker struct {
	keyed       bool
	delayHeader string
	now         int64 // milliseconds
}

// look gives each record of the batches as a candidate of its own, if need be.
// Records whose keys the ledger knows already are not read again.
func (s *Subscription) look(batches []looked) error {
	s.mu.Lock()
	l := looker{keyed: s.cfg.KeyOrder, delayHeader: s.cfg.DelayHeader, now: s.k.o.Now().UnixMilli()}
	s.mu.Unlock()
	if !l.keyed && l.delayHeader == "" {
		return nil
	}
	for i := range batches {
		b := &batches[i]
		if b.skip {
			continue
		}
		at := b.span.First
		if l.delayHeader == "" {
			s.mu.Lock()
			b.each, at = s.l.Known(b.span)
			s.mu.Unlock()
		}
		if err := l.read(b, at); err != nil {
			return err
		}
		if b.each == nil {
			b.each = []ledger.Candidate{} // nothing here is to be had unseen
		}
	}
	return nil
}

// read looks at the records of b from offset at on.
func (l looker) read(b *looked, at model.Offset) error {
	if at > b.span.Last {
		return nil
	}
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
	if err == nil && at <= b.span.Last {
		b.gaps = append(b.gaps, ledger.Span{First: at, Last: b.span.Last})
	}
	return err
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
