package partlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

const (
	// shortSpan is the length below which reading span after span is scattered
	// reading; an adopted file's spans were bulk and are left alone for longer.
	shortSpan        = 256 << 10
	shortSpanAdopted = 64 << 10
	// manySpans short spans in a row are merged, once there is enough of them.
	manySpans = 8
	// spansMax bounds the spans of all logs together, and so their memory.
	spansMax = 256 << 10
)

// series is a run of neighbouring spans of one log, to be written as one.
type series struct {
	log   *Log
	spans []span
}

func (m series) bytes() (n int64) {
	for _, s := range m.spans {
		n += s.bytes
	}
	return n
}

// mergeRound does one merge if one is due: of scattered logs, else of segments
// that are mostly dead.
func (s *Store) mergeRound(ctx context.Context) (more bool, err error) {
	k := &s.keeper
	if s.stats.spansChanged.Swap(false) {
		k.lookForMerge = true
	}
	if !k.lookForMerge {
		return false, nil
	}
	logs := s.all()
	slices.SortFunc(logs, func(a, b *Log) int { return a.id.Compare(b.id) })
	work := s.scattered(logs)
	if len(work) == 0 {
		work = s.mostlyDead(logs)
	}
	if len(work) == 0 {
		k.lookForMerge = false
		return false, nil
	}
	err = s.merge(ctx, work)
	if d, ok := errors.AsType[*Damaged](err); ok {
		s.log.Error("stored batches are damaged; their log is not merged any more", "err", err)
		k.unmergeable[d.Log] = true
		return true, nil
	}
	return err == nil, err
}

// scattered picks the series of short spans that are worth merging.
func (s *Store) scattered(logs []*Log) []series {
	least := manySpans
	if s.spanCount(logs) > spansMax {
		least = 2
	}
	var work []series
	var total int64
	for _, l := range logs {
		if s.keeper.unmergeable[l.id] {
			continue
		}
		l.mu.Lock()
		for _, spans := range shortSeries(l.spans, l.policy, least, s.o.mixedBytes()) {
			m := series{l, spans}
			work = append(work, m)
			total += m.bytes()
		}
		l.mu.Unlock()
		if total >= s.o.mixedBytes() {
			return work
		}
	}
	if total < s.o.soloBytes() && least == manySpans {
		return nil
	}
	return work
}

func (s *Store) spanCount(logs []*Log) (n int) {
	for _, l := range logs {
		l.mu.Lock()
		n += len(l.spans)
		l.mu.Unlock()
	}
	return n
}

// shortSeries finds at least least short spans in a row, of at most most bytes. A
// series stays within segment.bytes and a quarter of the retention time, so that retention still
// finds small units.
func shortSeries(spans []span, p Policy, least int, most int64) [][]span {
	if p.SegmentBytes > 0 {
		most = min(most, p.SegmentBytes)
	}
	var found [][]span
	for i := 0; i < len(spans); {
		n, bytes := i, int64(0)
		for ; n < len(spans) && isShort(spans[n]) && bytes+spans[n].bytes <= most; n++ {
			if n > i && (spans[n].base != spans[n-1].last+1 || tooLong(spans[i], spans[n], p)) {
				break
			}
			bytes += spans[n].bytes
		}
		if n-i >= least {
			found = append(found, slices.Clone(spans[i:n]))
		}
		i = max(n, i+1)
	}
	return found
}

func isShort(s span) bool {
	if s.seg.adopted {
		return s.bytes < shortSpanAdopted
	}
	return s.bytes < shortSpan
}

// tooLong reports that first and last are too far apart in time to be one unit.
func tooLong(first, last span, p Policy) bool {
	limit := p.SegmentTime
	if q := p.RetentionTime / 4; q > 0 && (limit == 0 || q < limit) {
		limit = q
	}
	return limit > 0 && last.maxTs-first.maxTs > int64(limit/time.Millisecond)
}

// deadRoom is how much room a segment must waste, beside what its index ever knew,
// to be written anew: data that was dropped before its file was adopted.
const deadRoom = 1 << 20

// mostlyDead reports that less than half of the segment is in use.
func (s *segment) mostlyDead() bool {
	live := s.live.Load()
	return live > 0 && (live < s.bytes/2 || live < s.size/2 && s.size-live > deadRoom)
}

// mostlyDead picks what is left in segments of which less than half is in use.
func (s *Store) mostlyDead(logs []*Log) []series {
	picked := make(map[*segment]bool)
	var total int64
	s.mu.RLock()
	for _, seg := range s.segments {
		if seg.mostlyDead() && total < s.o.mixedBytes() {
			picked[seg] = true
			total += seg.live.Load()
		}
	}
	s.mu.RUnlock()
	if len(picked) == 0 {
		return nil
	}
	var work []series
	for _, l := range logs {
		if s.keeper.unmergeable[l.id] {
			continue
		}
		l.mu.Lock()
		for i := 0; i < len(l.spans); {
			n := i
			for n < len(l.spans) && picked[l.spans[n].seg] && (n == i || l.spans[n].base == l.spans[n-1].last+1) {
				n++
			}
			if n > i {
				work = append(work, series{l, slices.Clone(l.spans[i:n])})
			}
			i = max(n, i+1)
		}
		l.mu.Unlock()
	}
	return work
}

// merge writes each series to a new segment, in one run, and puts it in the
// place of the series.
func (s *Store) merge(ctx context.Context, work []series) error {
	out := output{s: s}
	for _, m := range work {
		err := out.begin(m.log.id, m.bytes())
		if err == nil {
			err = s.copySeries(ctx, m, &out)
		}
		if err != nil {
			return errors.Join(err, out.abort())
		}
	}
	done, err := out.finish()
	if err != nil {
		return errors.Join(err, out.abort())
	}
	s.addSegments(done)
	spans := spansOf(done)
	for _, m := range work {
		m.log.replace(m.spans, spans[m.log.id])
	}
	s.stats.merged.Add(1)
	s.keeper.dirty = true
	return nil
}

// copySeries writes the blocks of a series that are not wholly below the start.
func (s *Store) copySeries(ctx context.Context, m series, out *output) error {
	for _, sp := range m.spans {
		// A span that the log gave up meanwhile may have lost its files.
		if !m.log.pinSpan(sp) {
			continue
		}
		err := s.eachOfSpan(sp, m.log.Start(), func(b index.Block, data []byte) error {
			if err := s.yield(ctx, len(data), true); err != nil {
				return err
			}
			return out.add(m.log.id, b, data)
		})
		sp.seg.unpin()
		if d, ok := errors.AsType[*Damaged](err); ok {
			d.Log = m.log.id
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachOfSpan calls f for the blocks of a span, which the caller has pinned, that
// reach to from.
func (s *Store) eachOfSpan(sp span, from model.Offset, f func(index.Block, []byte) error) error {
	blocks, err := s.blocks.Get(sp.seg.idx, sp.sec)
	if err != nil {
		return newDamaged(sp.seg.idx.Path(), &Damaged{First: sp.base, Last: sp.last, Where: "index", Cause: err})
	}
	return eachBlock(sp.seg.data, blocks[blockAt(blocks, from):], nil, func(b index.Block, data []byte) (bool, error) {
		return true, f(b, data)
	})
}

// pinSpan pins the files of a span if the log still has it.
func (l *Log) pinSpan(sp span) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.findSpanLocked(sp) < 0 {
		return false
	}
	sp.seg.pin()
	return true
}

func (l *Log) findSpanLocked(sp span) int {
	if i := l.spanAtLocked(sp.last); i < len(l.spans) && l.spans[i].seg == sp.seg && l.spans[i].base == sp.base {
		return i
	}
	return -1
}

// replace puts spans that hold the same batches in the place of old, neighbours
// of which the log may have given up the first ones, or all. fresh may hold spans
// of other places as well.
func (l *Log) replace(old, fresh []span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.findSpanLocked(old[len(old)-1]) + 1
	if end == 0 || l.dropped {
		return
	}
	begin := end
	for begin > 0 && l.spans[begin-1].last >= old[0].base {
		begin--
	}
	for _, sp := range l.spans[begin:end] {
		l.store.unrefer(sp)
		l.size.Add(-sp.bytes)
	}
	var in []span
	for _, sp := range fresh {
		if sp.base >= old[0].base && sp.last <= old[len(old)-1].last && sp.last >= l.Start() {
			refer(sp)
			l.size.Add(sp.bytes)
			in = append(in, sp)
		}
	}
	l.spans = slices.Replace(l.spans, begin, end, in...)
}
