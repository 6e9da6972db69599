package partlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/compact"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

const (
	// compactionInterval is how often the keeper looks for logs to compact.
	compactionInterval = 5 * time.Second
	// keyMapBytes bounds the memory of one compaction; more keys take more runs.
	keyMapBytes = 64 << 20
	// defaultDirtyRatio is Kafka's min.cleanable.dirty.ratio.
	defaultDirtyRatio = 0.5
	// compactedChunk is how many bytes of kept batches are written together.
	compactedChunk = 64 << 10
)

// CompactionView is what a partition tells of itself when its log is compacted.
type CompactionView struct {
	// Stable is the last stable offset: above it a transaction is undecided.
	Stable model.Offset
	// Keeps says that the batch of a producer that ends at last holds the
	// sequence by which the producer is known.
	Keeps func(producer int64, last model.Offset) bool
}

// SetCompaction names who is asked for the view. Without it nothing is compacted.
// It is called without any lock of the store held.
func (l *Log) SetCompaction(f func() CompactionView) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compaction = f
}

// job is the compaction of one log: its input, and what became of it.
type job struct {
	log     *Log
	view    CompactionView
	policy  Policy
	clean   model.Offset
	end     model.Offset // of the input; all of it is durable and rolled
	spans   []span
	extents share
	bytes   int64
	expiry  bool // only tombstones and markers whose time is over are to go

	plan  *compact.Plan
	stats compact.Stats
	upTo  model.Offset // of the input that was written anew
}

// compactionRound compacts the logs that are due, small ones together.
func (s *Store) compactionRound(ctx context.Context) error {
	k, now := &s.keeper, s.o.Clock()
	if now.Sub(k.compaction) < compactionInterval {
		return nil
	}
	k.compaction = now
	logs := s.all()
	slices.SortFunc(logs, func(a, b *Log) int { return a.id.Compare(b.id) })
	var jobs []*job
	var bytes int64
	for _, l := range logs {
		j := l.compactionDue(now, s.o.mixedBytes()/4)
		if j == nil || k.unmergeable[l.id] {
			continue
		}
		if jobs = append(jobs, j); bytes+j.bytes >= s.o.mixedBytes() {
			if err := s.compact(ctx, jobs); err != nil {
				return err
			}
			jobs, bytes = nil, 0
			continue
		}
		bytes += j.bytes
	}
	return s.compact(ctx, jobs)
}

// compactionDue makes the log's job if enough of it is dirty, or dirty for too
// long. Extents of journal files take part if the log is at most small bytes:
// that takes no longer than the journal can wait.
func (l *Log) compactionDue(now time.Time, small int64) *job {
	l.mu.Lock()
	ask := l.compaction
	ok := ask != nil && l.policy.Compact && !l.dropped
	l.mu.Unlock()
	if !ok {
		return nil
	}
	view := ask()
	l.mu.Lock()
	defer l.mu.Unlock()
	j := &job{log: l, view: view, policy: l.policy, clean: max(l.clean, l.Start())}
	j.spans = slices.Clone(l.spans)
	if l.Size() <= small {
		j.extents = l.shareLocked(l.rolledLocked(now))
	}
	j.cutInput(min(view.Stable, l.damageFromLocked()))
	var dirty int64
	oldest := int64(-1)
	for _, u := range j.units() {
		j.bytes += u.bytes
		if u.last >= j.clean {
			dirty += u.bytes
			if oldest < 0 {
				oldest = u.maxTs
			}
		}
	}
	ratio := cmp.Or(j.policy.MinDirtyRatio, defaultDirtyRatio)
	late := j.policy.MaxCompactionLag > 0 && oldest >= 0 && oldest < now.Add(-j.policy.MaxCompactionLag).UnixMilli()
	// In a large log they wait until it is dirty enough.
	j.expiry = l.horizon > 0 && l.horizon <= now.UnixMilli() && l.Size() <= small && j.end > j.first()
	if j.expiry || dirty > 0 && j.end != l.stuckAt && (late || float64(dirty) >= ratio*float64(j.bytes)) {
		return j
	}
	return nil
}

// rolledLocked counts the extents that a Kafka broker would have in closed
// segments: those older than segment.ms, or behind segment.bytes of newer ones.
func (l *Log) rolledLocked(now time.Time) int {
	n, newer := len(l.extents), int64(0)
	for ; n > 0; n-- {
		e := l.extents[n-1]
		old := l.policy.SegmentTime > 0 && e.maxTs < now.Add(-l.policy.SegmentTime).UnixMilli()
		if old || l.policy.SegmentBytes > 0 && newer >= l.policy.SegmentBytes {
			break
		}
		newer += int64(e.size)
	}
	return n
}

// damageFromLocked is where the first damage begins: nothing behind it is compacted.
func (l *Log) damageFromLocked() model.Offset {
	if len(l.damage) == 0 {
		return l.End()
	}
	return l.damage[0].base
}

// cutInput leaves out the units that reach to or beyond o.
func (j *job) cutInput(o model.Offset) {
	for n := len(j.extents.extents); n > 0 && j.extents.extents[n-1].last >= o; n-- {
		j.extents.extents, j.extents.data = j.extents.extents[:n-1], j.extents.data[:n-1]
	}
	for n := len(j.spans); n > 0 && j.spans[n-1].last >= o && len(j.extents.extents) == 0; n-- {
		if j.spans[n-1].base < o {
			break // a span may be cut: what is behind o is copied as it is
		}
		j.spans = j.spans[:n-1]
	}
	for _, u := range j.units() {
		j.end = u.last + 1
	}
	j.end = min(j.end, o)
}

func (j *job) units() []unit {
	units := make([]unit, 0, len(j.spans)+len(j.extents.extents))
	for _, sp := range j.spans {
		units = append(units, unit{sp.last, sp.maxTs, sp.bytes})
	}
	for _, e := range j.extents.extents {
		units = append(units, unit{e.last, e.maxTs, int64(e.size)})
	}
	return units
}

// compact runs the jobs into one output and swaps each log's places.
func (s *Store) compact(ctx context.Context, jobs []*job) error {
	jobs = slices.DeleteFunc(jobs, func(j *job) bool {
		err := s.plan(ctx, j)
		return s.giveUpJob(j, err)
	})
	if len(jobs) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.roomFor(jobs); err != nil {
		return err
	}
	out := output{s: s}
	for _, j := range jobs {
		if err := s.rewrite(ctx, j, &out); err != nil {
			s.giveUpJob(j, err)
			return errors.Join(err, out.abort())
		}
	}
	done, err := out.finish()
	spans := spansOf(done)
	for _, j := range jobs {
		if err == nil {
			err = s.verify(j, spans[j.log.id])
		}
	}
	if err != nil {
		return errors.Join(err, out.abort())
	}
	s.addSegments(done)
	for _, j := range jobs {
		if j.log.compacted(j, spans[j.log.id]) {
			s.stats.compacted(j.stats)
		}
	}
	s.keeper.dirty = true
	return nil
}

// giveUpJob reports whether a job ends here: it has failed, or cannot get further
// than the last one did.
func (s *Store) giveUpJob(j *job, err error) bool {
	if err == nil && (j.plan.Cut() > j.clean || j.expiry && j.plan.Cut() > j.first()) {
		return false
	}
	if err == nil {
		j.log.mu.Lock()
		j.log.stuckAt = j.end
		j.log.mu.Unlock()
		return true
	}
	if !errors.Is(err, context.Canceled) {
		s.log.Error("a log cannot be compacted", "partition", j.log.id.String(), "err", err)
	}
	if class := model.ClassOf(err); class == model.ClassCorrupt || class == model.ClassInvalidRecord {
		s.keeper.unmergeable[j.log.id] = true
	}
	return true
}

// roomFor refuses to begin what the disk cannot hold: the output is at most as
// large as the input, which goes only afterwards.
func (s *Store) roomFor(jobs []*job) error {
	var need int64
	for _, j := range jobs {
		need += j.bytes
	}
	sp, err := s.fs.Space(s.dir)
	if err != nil {
		return err
	}
	if keep := int64(sp.Total / 50); int64(sp.Free)-need < min(keep, 1<<30) {
		return &model.Error{Class: model.ClassDiskFull, Op: "compact", Detail: fmt.Sprintf("compaction needs up to %d bytes, %d are free", need, sp.Free)}
	}
	return nil
}

// plan is the first two passes.
func (s *Store) plan(ctx context.Context, j *job) error {
	limits := compact.Limits{Clean: j.clean, End: j.end, MapBytes: keyMapBytes}
	if j.policy.MinCompactionLag > 0 {
		limits.Young = s.o.Clock().Add(-j.policy.MinCompactionLag).UnixMilli()
	}
	j.plan = compact.NewPlan(limits)
	if _, err := s.eachInput(ctx, j, j.clean, j.plan.Scan); err != nil {
		return err
	}
	j.plan.EndScan()
	_, err := s.eachInput(ctx, j, j.clean, j.plan.Index)
	return err
}

// eachInput calls f for the job's batches in the blocks that reach to from, until
// it says no. upTo is the end of the last unit that was begun.
func (s *Store) eachInput(ctx context.Context, j *job, from model.Offset, f func(model.Batch) (bool, error)) (upTo model.Offset, err error) {
	more := true
	each := func(_ index.Block, data []byte) error {
		if err := s.yield(ctx, len(data), len(j.extents.extents) == 0); err != nil {
			return err
		}
		for len(data) > 0 && more {
			b, rest, err := model.NextBatch(data)
			if err != nil {
				return &model.Error{Class: model.ClassCorrupt, Op: "compact", Object: j.log.id.String(), Cause: err}
			}
			if more, err = f(b); err != nil {
				return err
			}
			data = rest
		}
		return nil
	}
	for _, sp := range j.spans {
		if sp.last < from || !more || !j.log.pinSpan(sp) {
			continue
		}
		upTo = sp.last + 1
		err := s.eachOfSpan(sp, from, each)
		sp.seg.unpin()
		if err != nil {
			return 0, err
		}
	}
	if !more || len(j.extents.extents) == 0 {
		return upTo, nil
	}
	return j.extents.extents[len(j.extents.extents)-1].last + 1, j.extents.each(each)
}

// rewrite is the third pass: everything up to the end of the unit in which the
// plan's range ends.
func (s *Store) rewrite(ctx context.Context, j *job, out *output) error {
	if err := out.begin(j.log.id, j.bytes); err != nil {
		return err
	}
	f := compact.NewFilter(j.plan, compact.Clock{
		Now: s.o.Clock().UnixMilli(), DeleteRetention: j.policy.DeleteRetention.Milliseconds(),
	}, j.view.Keeps)
	w := coverWriter{out: out, log: j.log.id, next: j.first()}
	j.trimInput()
	upTo, err := s.eachInput(ctx, j, j.first(), func(b model.Batch) (bool, error) {
		kept, err := f.Next(b)
		if err != nil || kept == nil {
			return true, err
		}
		return true, w.add(kept)
	})
	if err != nil {
		return err
	}
	if last := f.Last(); last != nil {
		if err := w.add(last); err != nil {
			return err
		}
	}
	j.upTo, j.stats = upTo, f.Stats
	return w.finish(upTo)
}

// first is the first offset that the input covers; its end if it is empty.
func (j *job) first() model.Offset {
	switch {
	case len(j.spans) > 0:
		return j.spans[0].base
	case len(j.extents.extents) > 0:
		return j.extents.extents[0].base
	}
	return j.end
}

// trimInput leaves out the units behind the one in which the range ends.
func (j *job) trimInput() {
	cut := j.plan.Cut()
	for n := len(j.extents.extents); n > 0 && j.extents.extents[n-1].base >= cut; n-- {
		j.extents.extents, j.extents.data = j.extents.extents[:n-1], j.extents.data[:n-1]
	}
	for n := len(j.spans); n > 0 && j.spans[n-1].base >= cut; n-- {
		j.spans = j.spans[:n-1]
	}
}

// coverWriter writes batches as blocks that cover the offsets without a hole.
type coverWriter struct {
	out  *output
	log  model.PartitionID
	next model.Offset // first that is not covered
	buf  []byte
	last model.Offset
	ts   int64
}

func (w *coverWriter) add(b model.Batch) error {
	if len(w.buf) > 0 && len(w.buf)+len(b) > compactedChunk {
		if err := w.flush(w.last); err != nil {
			return err
		}
	}
	if len(w.buf) == 0 {
		w.ts = -1
	}
	w.buf, w.last, w.ts = append(w.buf, b...), b.LastOffset(), max(w.ts, b.MaxTimestamp())
	return nil
}

func (w *coverWriter) flush(last model.Offset) error {
	err := w.out.add(w.log, index.Block{Base: w.next, Last: last, MaxTimestamp: w.ts}, w.buf)
	w.buf, w.next = nil, last+1
	return err
}

// finish covers the rest, up to end.
func (w *coverWriter) finish(end model.Offset) error {
	if len(w.buf) == 0 {
		return nil
	}
	return w.flush(end - 1)
}

// verify reads the output back and proves that what was kept is there.
func (s *Store) verify(j *job, spans []span) error {
	var batches, records int64
	if j.log.Start() >= j.upTo {
		return nil // trimmed meanwhile: none of it is used
	}
	next := j.first()
	at := model.Offset(-1)
	for _, sp := range spans {
		if sp.base != next {
			return unproven(j, fmt.Sprintf("offset %d is not covered", next))
		}
		next = sp.last + 1
		sp.seg.pin()
		err := s.eachOfSpan(sp, sp.base, func(_ index.Block, data []byte) error {
			for len(data) > 0 {
				b, rest, err := model.NextBatch(data)
				if err != nil {
					return err
				}
				if b.BaseOffset() <= at || !b.ValidCRC() {
					return unproven(j, fmt.Sprintf("the batch at %d is not as it was written", b.BaseOffset()))
				}
				at, data = b.LastOffset(), rest
				batches++
				records += int64(b.NumRecords())
			}
			return nil
		})
		sp.seg.unpin()
		if err != nil {
			return err
		}
	}
	if next != j.upTo || batches != j.stats.BatchesOut || records != j.stats.RecordsOut || !j.stats.Balanced() {
		return unproven(j, fmt.Sprintf("%d batches and %d records up to %d do not match %+v", batches, records, next, j.stats))
	}
	return nil
}

func unproven(j *job, detail string) error {
	return &model.Error{Class: model.ClassInternal, Op: "compact", Object: j.log.id.String(), Detail: detail}
}

// compacted puts the output in the place of the job's input; not if a flush has
// meanwhile put part of it together with what follows.
func (l *Log) compacted(j *job, spans []span) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.spanAtLocked(j.upTo)
	m := l.extentAtLocked(j.upTo)
	if l.dropped || n < len(l.spans) && l.spans[n].base < j.upTo || m < len(l.extents) && l.extents[m].base < j.upTo {
		return false
	}
	for _, sp := range l.spans[:n] {
		l.store.unrefer(sp)
		l.size.Add(-sp.bytes)
	}
	for _, e := range l.extents[:m] {
		l.store.tail.releaseLocked(e.slot)
		l.size.Add(-int64(e.size))
	}
	var in []span
	for _, sp := range spans {
		if sp.last >= l.Start() {
			refer(sp)
			l.size.Add(sp.bytes)
			in = append(in, sp)
		}
	}
	l.spans = slices.Replace(l.spans, 0, n, in...)
	l.extents = shrink(slices.Delete(l.extents, 0, m))
	l.clean, l.stuckAt, l.horizon = max(l.clean, j.plan.Cut()), 0, j.stats.Horizon
	return true
}
