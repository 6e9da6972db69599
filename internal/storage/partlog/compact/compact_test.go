package compact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

const day = int64(24 * time.Hour / time.Millisecond)

// testLog builds a log batch by batch and knows what a reader must find.
type testLog struct {
	t       testing.TB
	batches []model.Batch
	txns    []txn
	now     int64
}

// txn is a transaction: where its data and its marker are.
type txn struct {
	producer int64
	data     []model.Offset
	marker   model.Offset // -1: undecided
	commit   bool
}

type kv struct {
	key   string
	value any // nil is a tombstone
}

func (l *testLog) end() model.Offset {
	if len(l.batches) == 0 {
		return 0
	}
	return l.batches[len(l.batches)-1].LastOffset() + 1
}

func (l *testLog) put(m records.Meta, kvs ...kv) model.Offset {
	l.t.Helper()
	m.FirstTimestamp = l.now
	w := records.NewBuilder(m)
	for i, e := range kvs {
		var key, value []byte
		if e.key != "" {
			key = []byte(e.key)
		}
		if e.value != nil {
			value = []byte(fmt.Sprint(e.value))
		}
		w.Add(int64(i), key, value, nil)
	}
	b, err := w.Build(0)
	if err != nil {
		l.t.Fatal(err)
	}
	base := l.end()
	b.SetBaseOffset(base)
	b.SetLeaderEpoch(5)
	l.batches = append(l.batches, b)
	return base
}

func (l *testLog) plain(kvs ...kv) { l.put(records.Plain(time.UnixMilli(l.now)), kvs...) }

func (l *testLog) inTxn(producer int64, kvs ...kv) {
	base := l.put(records.Meta{Transactional: true, ProducerID: producer, ProducerEpoch: 1, BaseSequence: int32(l.end())}, kvs...)
	for i := range l.txns {
		if x := &l.txns[i]; x.producer == producer && x.marker < 0 {
			x.data = append(x.data, base)
			return
		}
	}
	l.txns = append(l.txns, txn{producer: producer, data: []model.Offset{base}, marker: -1})
}

func (l *testLog) mark(producer int64, commit bool) {
	b := records.MarkerBatch(time.UnixMilli(l.now), producer, 1, records.Marker{Commit: commit})
	b.SetBaseOffset(l.end())
	for i := range l.txns {
		if x := &l.txns[i]; x.producer == producer && x.marker < 0 {
			x.marker, x.commit = l.end(), commit
		}
	}
	l.batches = append(l.batches, b)
}

// stable is the last stable offset.
func (l *testLog) stable() model.Offset {
	o := l.end()
	for _, x := range l.txns {
		if x.marker < 0 {
			o = min(o, x.data[0])
		}
	}
	return o
}

// compact runs once and replaces the log.
func (l *testLog) compact(limits Limits, keeps func(int64, model.Offset) bool) (*Plan, Stats) {
	l.t.Helper()
	if limits.MapBytes == 0 {
		limits.MapBytes = 1 << 20
	}
	p := NewPlan(limits)
	pass := func(f func(model.Batch) (bool, error)) {
		for _, b := range l.batches {
			more, err := f(b)
			if err != nil {
				l.t.Fatal(err)
			}
			if !more {
				return
			}
		}
	}
	pass(p.Scan)
	p.EndScan()
	pass(p.Index)
	f := NewFilter(p, Clock{Now: l.now, DeleteRetention: day}, keeps)
	var out []model.Batch
	pass(func(b model.Batch) (bool, error) {
		kept, err := f.Next(b)
		if kept != nil {
			out = append(out, kept)
		}
		return true, err
	})
	if last := f.Last(); last != nil {
		out = append(out, last)
	}
	if !f.Stats.Balanced() {
		l.t.Fatalf("records are not accounted for: %+v", f.Stats)
	}
	for _, b := range out {
		if err := records.Check(b, 0); err != nil || !b.ValidCRC() {
			l.t.Fatalf("the batch at %d is not sound: %v", b.BaseOffset(), err)
		}
	}
	l.batches = out
	return p, f.Stats
}

// show lists the log, one batch a line.
func (l *testLog) show() string {
	var out bytes.Buffer
	for _, b := range l.batches {
		fmt.Fprintf(&out, "%d-%d", b.BaseOffset(), b.LastOffset())
		if b.IsControl() {
			out.WriteString(" marker")
		}
		if b.HasDeleteHorizon() {
			fmt.Fprintf(&out, " horizon+%d", b.FirstTimestamp()-day)
		}
		if b.NumRecords() == 0 {
			out.WriteString(" empty")
		}
		if !b.IsControl() {
			if err := eachRecord(b, func(r records.Record) error {
				v := string(r.Value)
				if r.Value == nil {
					v = "-"
				}
				_, err := fmt.Fprintf(&out, " %s=%s", r.Key, v)
				return err
			}); err != nil {
				l.t.Fatal(err)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func (l *testLog) want(text string) {
	l.t.Helper()
	if got := l.show(); got != text {
		l.t.Errorf("log is\n%swant\n%s", got, text)
	}
}

func TestNewestOfEachKeyStays(t *testing.T) {
	l := &testLog{t: t}
	l.plain(kv{"a", 1}, kv{"b", 1}, kv{"a", 2})
	l.plain(kv{"c", 1})
	l.plain(kv{"b", 2}, kv{"", "no key"})
	l.plain(kv{"c", 2})
	l.compact(Limits{End: l.end()}, nil)
	l.want("0-2 a=2\n4-5 b=2\n6-6 c=2\n")
	if b := l.batches[0]; b.LeaderEpoch() != 5 || b.MaxTimestamp() != 2 {
		t.Errorf("epoch %d, max timestamp %d", b.LeaderEpoch(), b.MaxTimestamp())
	}
	l.compact(Limits{Clean: l.end(), End: l.end()}, nil)
	l.want("0-2 a=2\n4-5 b=2\n6-6 c=2\n")
}

func TestNothingAtOrAboveTheEndChanges(t *testing.T) {
	l := &testLog{t: t}
	for i := range 6 {
		l.plain(kv{"a", i})
	}
	p, _ := l.compact(Limits{End: 3}, nil)
	l.want("2-2 a=2\n3-3 a=3\n4-4 a=4\n5-5 a=5\n")
	if p.Cut() != 3 {
		t.Errorf("cut %d", p.Cut())
	}
	l.now = 100
	l.plain(kv{"a", 6})
	l.compact(Limits{Clean: 3, End: l.end(), Young: 100}, nil)
	l.want("5-5 a=5\n6-6 a=6\n")
}

func TestTombstoneStaysForItsTime(t *testing.T) {
	l := &testLog{t: t, now: 10}
	l.plain(kv{"a", 1}, kv{"b", 1})
	l.plain(kv{"a", nil}, kv{"c", 1})
	l.compact(Limits{End: 4}, nil)
	l.want("0-1 b=1\n2-3 horizon+10 a=- c=1\n")
	if ts := l.batches[1].MaxTimestamp(); ts != 11 {
		t.Errorf("max timestamp %d, want 11 as before", ts)
	}
	l.now = 9 + day
	l.compact(Limits{Clean: 4, End: 4}, nil)
	l.want("0-1 b=1\n2-3 horizon+10 a=- c=1\n")
	l.now = 10 + day
	l.compact(Limits{Clean: 4, End: 4}, nil) // below Clean the horizon still acts
	l.want("0-1 b=1\n2-3 horizon+10 c=1\n")
}

func TestAbortedDataGoesAndMarkersFollowLater(t *testing.T) {
	l := &testLog{t: t}
	l.inTxn(1, kv{"a", "aborted"})
	l.plain(kv{"a", 1})
	l.inTxn(2, kv{"b", 1})
	l.mark(1, false)
	l.mark(2, true)
	l.plain(kv{"z", 1})
	l.compact(Limits{End: l.stable()}, nil)
	l.want("1-1 a=1\n2-2 b=1\n3-3 marker horizon+0\n4-4 marker\n5-5 z=1\n")
	// The committed data is superseded: its marker stays for the retention.
	l.plain(kv{"b", 2})
	l.compact(Limits{Clean: 6, End: 7}, nil)
	l.want("1-1 a=1\n3-3 marker horizon+0\n4-4 marker horizon+0\n5-5 z=1\n6-6 b=2\n")
	l.now = day
	l.plain(kv{"z", 2})
	l.compact(Limits{Clean: 7, End: 8}, nil)
	l.want("1-1 a=1\n6-6 b=2\n7-7 z=2\n")
}

// The case of reported row K19: aborted data must never come back because markers
// were taken for records of one key.
func TestAbortMarkersAreNotKeyed(t *testing.T) {
	l := &testLog{t: t}
	l.inTxn(1, kv{"k", "bad1"})
	for i := range 20 {
		l.plain(kv{"p", i})
	}
	l.mark(1, false)
	l.inTxn(1, kv{"k", "bad2"})
	l.mark(1, false)
	l.plain(kv{"p", "end"})
	for range 2 {
		l.compact(Limits{End: l.stable()}, nil)
	}
	l.want("21-21 marker horizon+0\n23-23 marker horizon+0\n24-24 p=end\n")
}

func TestUndecidedTransactionEndsTheRange(t *testing.T) {
	l := &testLog{t: t}
	l.plain(kv{"a", 1})
	l.plain(kv{"a", 2})
	l.inTxn(7, kv{"a", "maybe"})
	l.plain(kv{"a", 3})
	// Even when the caller's limit is too high.
	p, _ := l.compact(Limits{End: l.end()}, nil)
	if p.Cut() != 2 {
		t.Errorf("cut %d", p.Cut())
	}
	l.want("1-1 a=2\n2-2 a=maybe\n3-3 a=3\n")
	l.mark(7, false)
	l.compact(Limits{Clean: 2, End: l.end()}, nil)
	l.want("3-3 a=3\n4-4 marker horizon+0\n")
}

func TestSequencesAndTheEndSurvive(t *testing.T) {
	l := &testLog{t: t}
	seq := func(producer int64, base int32, kvs ...kv) {
		l.put(records.Meta{ProducerID: producer, BaseSequence: base}, kvs...)
	}
	seq(1, 10, kv{"a", 1}, kv{"b", 1})
	seq(2, 0, kv{"a", 2}, kv{"b", 2})
	l.plain(kv{"a", 3}, kv{"b", 3})
	l.plain(kv{"", "keyless"})
	_, st := l.compact(Limits{End: l.end()}, func(id int64, last model.Offset) bool { return id == 1 && last == 1 })
	l.want("0-1 empty\n4-5 a=3 b=3\n6-6 empty\n")
	if b := l.batches[0]; b.ProducerID() != 1 || b.BaseSequence() != 10 || b.LastOffsetDelta() != 1 {
		t.Errorf("producer %d, sequence %d to +%d", b.ProducerID(), b.BaseSequence(), b.LastOffsetDelta())
	}
	if st.RecordsOut != 2 || st.BatchesOut != 3 {
		t.Errorf("%+v", st)
	}
	l.plain(kv{"c", 1})
	l.compact(Limits{Clean: 7, End: l.end()}, nil)
	l.want("4-5 a=3 b=3\n7-7 c=1\n")
}

func TestFullMapEndsTheRangeAndTheNextRunGoesOn(t *testing.T) {
	l := &testLog{t: t}
	const keys = 5000 // more than firstSlots holds
	for round := range 2 {
		for i := 0; i < keys; i += 10 {
			var kvs []kv
			for k := range 10 {
				kvs = append(kvs, kv{fmt.Sprint("key", i+k), round})
			}
			l.plain(kvs...)
		}
	}
	end, runs := l.end(), 0
	for clean := model.Offset(0); clean < end; runs++ {
		p, _ := l.compact(Limits{Clean: clean, End: end, MapBytes: 1}, nil)
		if p.Cut() <= clean {
			t.Fatalf("no way on from %d", clean)
		}
		clean = p.Cut()
	}
	n := 0
	for _, b := range l.batches {
		if b.BaseOffset() < keys {
			t.Fatalf("the batch at %d should be gone", b.BaseOffset())
		}
		n += int(b.NumRecords())
	}
	if n != keys || runs < 5 {
		t.Errorf("%d records after %d runs", n, runs)
	}
}

// TestAgainstModel compacts random logs again and again, at random limits, and
// looks for everything that a reader of committed records must find.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		l := &testLog{t: t}
		var clean model.Offset
		committed := map[model.Offset]kv{} // by offset
		open := map[int64][]model.Offset{}
		for range 3 + rng.IntN(4) {
			for range rng.IntN(40) {
				l.now += rng.Int64N(1000)
				randomBatch(l, rng, committed, open)
			}
			keeps := func(int64, model.Offset) bool { return rng.IntN(5) == 0 }
			limits := Limits{Clean: clean, End: model.Offset(rng.Int64N(int64(l.stable()) + 1))}
			if rng.IntN(3) == 0 {
				limits.Young = l.now - 2000
			}
			if limits.End < clean {
				continue
			}
			p, _ := l.compact(limits, keeps)
			clean = max(clean, p.Cut())
			checkAgainst(t, seed, l, committed, clean)
			if rng.IntN(4) == 0 {
				l.now += day
			}
		}
	}
}

func randomBatch(l *testLog, rng *rand.Rand, committed map[model.Offset]kv, open map[int64][]model.Offset) {
	var kvs []kv
	for range 1 + rng.IntN(4) {
		e := kv{key: fmt.Sprint("k", rng.IntN(12)), value: rng.Int()}
		if rng.IntN(5) == 0 {
			e.value = nil
		}
		kvs = append(kvs, e)
	}
	base := l.end()
	producer := int64(1 + rng.IntN(3))
	switch n := rng.IntN(10); {
	case n < 5:
		l.plain(kvs...)
		for i, e := range kvs {
			committed[base+model.Offset(i)] = e
		}
	case n < 8:
		l.inTxn(producer, kvs...)
		for i, e := range kvs {
			o := base + model.Offset(i)
			committed[o] = e // until the marker says otherwise
			open[producer] = append(open[producer], o)
		}
	default:
		commit := rng.IntN(2) == 0
		l.mark(producer, commit)
		if !commit {
			for _, o := range open[producer] {
				delete(committed, o)
			}
		}
		delete(open, producer)
	}
}

// checkAgainst: below clean each key occurs once at most, with the newest
// committed value, and no aborted record is there; above, nothing is missing.
func checkAgainst(t *testing.T, seed uint64, l *testLog, committed map[model.Offset]kv, clean model.Offset) {
	t.Helper()
	newest := map[string]model.Offset{}
	for o, e := range committed {
		if o < clean {
			newest[e.key] = max(newest[e.key], o)
		}
	}
	found := map[model.Offset]bool{}
	markers := map[model.Offset]bool{}
	at := model.Offset(-1)
	for _, b := range l.batches {
		if b.BaseOffset() <= at {
			t.Fatalf("seed %d: offsets do not rise at %d", seed, b.BaseOffset())
		}
		at = b.LastOffset()
		if b.IsControl() {
			markers[b.BaseOffset()] = true
			continue
		}
		if err := eachRecord(b, func(r records.Record) error {
			o := b.BaseOffset() + model.Offset(r.OffsetDelta)
			found[o] = true
			e, ok := committed[o]
			switch {
			case o >= clean:
			case !ok:
				t.Fatalf("seed %d: the aborted record at %d is there", seed, o)
			case string(r.Key) != e.key, newest[e.key] != o:
				t.Fatalf("seed %d: %s at %d is not the newest (%d)", seed, e.key, o, newest[e.key])
			case e.value != nil && string(r.Value) != fmt.Sprint(e.value):
				t.Fatalf("seed %d: %s at %d has another value", seed, e.key, o)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for o, e := range committed {
		if gone := !found[o]; gone && (o >= clean || newest[e.key] == o && e.value != nil) {
			t.Fatalf("seed %d: %s at %d is lost (clean to %d, newest %d)", seed, e.key, o, clean, newest[e.key])
		}
	}
	for _, x := range l.txns {
		for _, o := range x.data {
			if x.marker >= 0 && found[o] && !markers[x.marker] {
				t.Fatalf("seed %d: data at %d is there, its marker at %d is not", seed, o, x.marker)
			}
		}
	}
}
