package partition

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// data builds a client's batch of n records.
func data(pid int64, epoch int16, seq int32, n int, txn bool) model.Batch {
	b := records.NewBuilder(records.Meta{FirstTimestamp: 1, ProducerID: pid, ProducerEpoch: epoch, BaseSequence: seq, Transactional: txn})
	for range n {
		b.Add(0, []byte("k"), []byte("v"), nil)
	}
	batch, err := b.Build(0)
	if err != nil {
		panic(err)
	}
	return batch
}

func marker(pid int64, epoch int16, commit bool) model.Batch {
	return records.MarkerBatch(time.UnixMilli(1), pid, epoch, records.Marker{Commit: commit})
}

// take appends b to the state as the log would, at the given offset.
func take(t *testing.T, s *state, b model.Batch, at model.Offset) model.Offset {
	t.Helper()
	b.SetBaseOffset(at)
	if err := s.replay(b); err != nil {
		t.Fatal(err)
	}
	return b.LastOffset() + 1
}

func TestSequenceRules(t *testing.T) {
	const id = 7
	for _, c := range []struct {
		name   string
		before []model.Batch
		batch  model.Batch
		v2     bool
		loose  bool        // not enlisted
		want   model.Class // ClassInternal: accepted
		dup    bool
	}{
		{name: "no state takes any sequence", batch: data(id, 0, 41, 1, false)},
		{name: "no state under transactions v2 needs 0", batch: data(id, 0, 41, 1, true), v2: true, want: model.ClassOutOfOrder},
		{name: "next in line", before: []model.Batch{data(id, 0, 0, 3, false)}, batch: data(id, 0, 3, 1, false)},
		{name: "gap", before: []model.Batch{data(id, 0, 0, 3, false)}, batch: data(id, 0, 4, 1, false), want: model.ClassOutOfOrder},
		{name: "repeat", before: []model.Batch{data(id, 0, 0, 3, false)}, batch: data(id, 0, 0, 3, false), dup: true},
		{name: "repeat with another length", before: []model.Batch{data(id, 0, 0, 3, false)}, batch: data(id, 0, 0, 2, false), want: model.ClassOutOfOrder},
		{name: "oldest of five repeats", before: []model.Batch{data(id, 0, 0, 1, false), data(id, 0, 1, 1, false), data(id, 0, 2, 1, false), data(id, 0, 3, 1, false), data(id, 0, 4, 1, false)}, batch: data(id, 0, 0, 1, false), dup: true},
		{name: "sixth is forgotten", before: []model.Batch{data(id, 0, 0, 1, false), data(id, 0, 1, 1, false), data(id, 0, 2, 1, false), data(id, 0, 3, 1, false), data(id, 0, 4, 1, false), data(id, 0, 5, 1, false)}, batch: data(id, 0, 0, 1, false), want: model.ClassOutOfOrder},
		{name: "wrap", before: []model.Batch{data(id, 0, math.MaxInt32-1, 2, false)}, batch: data(id, 0, 0, 1, false)},
		{name: "wrap inside a batch", before: []model.Batch{data(id, 0, math.MaxInt32, 3, false)}, batch: data(id, 0, 2, 1, false)},
		{name: "stale epoch", before: []model.Batch{data(id, 2, 0, 1, false)}, batch: data(id, 1, 1, 1, false), want: model.ClassFenced},
		{name: "new epoch starts at 0", before: []model.Batch{data(id, 0, 0, 1, false)}, batch: data(id, 1, 0, 1, false)},
		{name: "new epoch elsewhere", before: []model.Batch{data(id, 0, 0, 1, false)}, batch: data(id, 1, 1, 1, false), want: model.ClassOutOfOrder},
		{name: "after a marker of the same epoch the sequence goes on", before: []model.Batch{data(id, 0, 0, 2, true), marker(id, 0, true)}, batch: data(id, 0, 2, 1, true)},
		{name: "after a marker with a bumped epoch it starts again", before: []model.Batch{data(id, 0, 0, 2, true), marker(id, 1, true)}, batch: data(id, 1, 0, 1, true)},
		{name: "plain batch inside a transaction", before: []model.Batch{data(id, 0, 0, 2, true)}, batch: data(id, 0, 2, 1, false), want: model.ClassTxnState},
		{name: "not enlisted, no state", batch: data(id, 0, 0, 1, true), loose: true, want: model.ClassNotInTxn},
		{name: "not enlisted, after the marker", before: []model.Batch{data(id, 0, 0, 2, true), marker(id, 0, true)}, batch: data(id, 0, 2, 1, true), loose: true, want: model.ClassNotInTxn},
		{name: "not enlisted, transaction of another epoch", before: []model.Batch{data(id, 0, 0, 2, true)}, batch: data(id, 1, 0, 1, true), loose: true, want: model.ClassNotInTxn},
		{name: "not enlisted, transaction open", before: []model.Batch{data(id, 0, 0, 2, true)}, batch: data(id, 0, 2, 1, true), loose: true},
		{name: "not enlisted, repeat", before: []model.Batch{data(id, 0, 0, 2, true), marker(id, 0, true)}, batch: data(id, 0, 0, 2, true), loose: true, dup: true},
		{name: "not enlisted, stale epoch", before: []model.Batch{marker(id, 1, false)}, batch: data(id, 0, 0, 1, true), loose: true, want: model.ClassFenced},
		{name: "no producer", batch: data(model.NoProducer, -1, -1, 1, false)},
	} {
		s := newState()
		at := model.Offset(100)
		for _, b := range c.before {
			at = take(t, &s, b, at)
		}
		dup, err := s.producers.check(c.batch, c.v2, !c.loose)
		switch {
		case c.want != model.ClassInternal:
			if err == nil || model.ClassOf(err) != c.want {
				t.Errorf("%s: error %v, want class %d", c.name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case (dup != nil) != c.dup:
			t.Errorf("%s: repeat %v", c.name, dup)
		case dup != nil && dup.base != 100:
			t.Errorf("%s: repeat of offset %d", c.name, dup.base)
		}
	}
}

func TestLastStableOffsetWaitsForDurableMarkers(t *testing.T) {
	s := newState()
	at := take(t, &s, data(1, 0, 0, 2, true), 0)     // 0-1
	at = take(t, &s, data(2, 0, 0, 3, true), at)     // 2-4
	at = take(t, &s, data(-1, -1, -1, 1, false), at) // 5
	if got := s.txns.lastStable(at); got != 0 {
		t.Fatalf("open from 0: lso %d", got)
	}
	at = take(t, &s, marker(1, 0, false), at) // 6
	s.txns.durable(6)                         // the marker is not durable yet
	if got := s.txns.lastStable(6); got != 0 {
		t.Fatalf("marker under way: lso %d", got)
	}
	s.txns.durable(7)
	if got := s.txns.lastStable(7); got != 2 {
		t.Fatalf("first ended: lso %d", got)
	}
	at = take(t, &s, marker(2, 0, true), at) // 7
	s.txns.durable(at)
	if got := s.txns.lastStable(at); got != at {
		t.Fatalf("both ended: lso %d of %d", got, at)
	}
	if got := s.txns.abortedIn(0, at); !reflect.DeepEqual(got, []AbortedTxn{{1, 0}}) {
		t.Fatalf("aborted %v", got)
	}
}

func TestAbortedListCoversExactlyTheRange(t *testing.T) {
	s := newState()
	at := model.Offset(0)
	long := at
	at = take(t, &s, data(99, 0, 0, 1, true), at) // a long transaction around the others
	var starts []model.Offset
	for i := range 50 {
		starts = append(starts, at)
		at = take(t, &s, data(int64(i), 0, 0, 2, true), at)
		at = take(t, &s, marker(int64(i), 0, i%2 == 0), at)
	}
	at = take(t, &s, marker(99, 0, false), at)
	for from := model.Offset(0); from < at; from++ {
		for _, width := range []model.Offset{1, 3, 20, at} {
			upTo := min(from+width, at)
			want := map[AbortedTxn]bool{}
			for i := 1; i < 50; i += 2 {
				if starts[i] < upTo && starts[i]+2 >= from {
					want[AbortedTxn{int64(i), starts[i]}] = true
				}
			}
			want[AbortedTxn{99, long}] = true
			got := map[AbortedTxn]bool{}
			for _, a := range s.txns.abortedIn(from, upTo) {
				got[a] = true
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("[%d,%d): got %v want %v", from, upTo, got, want)
			}
		}
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	s := newState()
	at := take(t, &s, data(1, 0, 0, 2, true), 0)
	at = take(t, &s, marker(1, 0, false), at)
	b := data(1, 3, 0, 2, true)
	b.SetLeaderEpoch(4)
	at = take(t, &s, b, at)
	for i := range 7 {
		b := data(2, 0, int32(i), 1, false)
		b.SetLeaderEpoch(4)
		at = take(t, &s, b, at)
	}
	got, err := decodeState(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	s.txns.durable(at)
	got.txns.endings, s.txns.endings = nil, nil
	if !reflect.DeepEqual(got, s) {
		t.Fatalf("\n got %+v\nwant %+v", got, s)
	}
}

func TestEpochEnds(t *testing.T) {
	s := newState()
	s.enterEpoch(0, 0)
	s.enterEpoch(2, 10)
	s.enterEpoch(3, 10) // epoch 2 never appended
	s.enterEpoch(5, 30)
	for _, c := range []struct {
		asked, epoch int32
		end          model.Offset
	}{{-1, -1, -1}, {0, 0, 10}, {1, 0, 10}, {2, 0, 10}, {3, 3, 30}, {4, 3, 30}, {5, 5, 50}, {6, -1, -1}} {
		if e, o := s.endOf(c.asked, 50); e != c.epoch || o != c.end {
			t.Errorf("epoch %d: %d/%d, want %d/%d", c.asked, e, o, c.epoch, c.end)
		}
	}
}

func TestIdleProducersExpire(t *testing.T) {
	s := newState()
	at := take(t, &s, data(1, 0, 0, 1, false), 0)
	take(t, &s, data(2, 0, 0, 1, true), at)
	s.producers.expire(2)
	if s.producers[1] != nil || s.producers[2] == nil {
		t.Fatalf("left: %v; the one with an open transaction stays, the other goes", s.producers)
	}
}

func FuzzDecodeState(f *testing.F) {
	s := newState()
	b := data(1, 0, 0, 2, true)
	_ = s.replay(b)
	f.Add(s.encode())
	f.Add([]byte{snapshotVersion, 0, 0, 0})
	f.Fuzz(func(t *testing.T, buf []byte) {
		s, err := decodeState(buf)
		if err != nil {
			return
		}
		again, err := decodeState(s.encode())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("re-encoding changes the state: %v", err)
		}
	})
}
