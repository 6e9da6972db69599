package session

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

// fixture is a cache with a clock of its own.
type fixture struct {
	*Cache
	t  *testing.T
	at time.Time
}

func newFixture(t *testing.T, slots int) *fixture {
	f := &fixture{t: t, at: time.Unix(1000, 0)}
	f.Cache = NewCache(slots, func() time.Time { return f.at })
	return f
}

func parts(indexes ...int32) (out []Partition) {
	for _, i := range indexes {
		out = append(out, Partition{Key: Key{Name: "t", Index: i}})
	}
	return out
}

// open opens a session over partitions and gives its id; 0 when it was declined.
func (f *fixture) open(indexes ...int32) int32 {
	f.t.Helper()
	s, code := f.Begin(Request{Epoch: Initial, Partitions: parts(indexes...)})
	if code != codes.None {
		f.t.Fatalf("opening: error %d", code)
	}
	s.End()
	return s.ID
}

// next sends the next request of a session and answers it: records for those in
// with. It gives the partitions in the order of the fetch and what the answer holds.
func (f *fixture) next(id, epoch int32, with ...int32) (order, answer string, code codes.Code) {
	s, code := f.Begin(Request{ID: id, Epoch: epoch})
	if code != codes.None {
		return "", "", code
	}
	defer s.End()
	var asked, told []int32
	for _, p := range s.Partitions {
		asked = append(asked, p.Index)
		o := Outcome{}
		for _, w := range with {
			o.HasRecords = o.HasRecords || w == p.Index
		}
		if s.Include(p, o) {
			told = append(told, p.Index)
		}
	}
	return fmt.Sprint(asked), fmt.Sprint(told), codes.None
}

// TestRow18SessionsTakeTurns: who got records goes to the end of the line, so that
// a limit on bytes starves nobody.
func TestRow18SessionsTakeTurns(t *testing.T) {
	f := newFixture(t, 10)
	id := f.open(1, 2, 3)
	for i, step := range []struct {
		with          []int32
		order, answer string
	}{
		{nil, "[1 2 3]", "[1 2 3]"}, // the first look at high watermark and start
		{nil, "[1 2 3]", "[]"},
		{[]int32{1}, "[1 2 3]", "[1]"},
		{[]int32{2, 3}, "[2 3 1]", "[2 3]"},
		{nil, "[1 2 3]", "[]"},
	} {
		order, answer, code := f.next(id, int32(i+1), step.with...)
		if code != codes.None || order != step.order || answer != step.answer {
			t.Errorf("step %d: error %d, order %s, answer %s; want %s, %s", i, code, order, answer, step.order, step.answer)
		}
	}
}

// TestRow18SlotsAreBounded: a new session takes the slot of one that is idle for
// long, and is declined otherwise.
func TestRow18SlotsAreBounded(t *testing.T) {
	f := newFixture(t, 2)
	a, b := f.open(1), f.open(1)
	if c := f.open(1); c != 0 {
		t.Error("a third session was opened")
	}
	f.at = f.at.Add(evictAfter - time.Second)
	if _, _, code := f.next(a, 1); code != codes.None {
		t.Fatalf("error %d", code)
	}
	f.at = f.at.Add(2 * time.Second)
	c := f.open(1)
	if c == 0 || f.Len() != 2 {
		t.Fatalf("session %d, %d in the cache", c, f.Len())
	}
	if _, _, code := f.next(b, 1); code != codes.FetchSessionIDNotFound {
		t.Errorf("the idle session: error %d", code)
	}
	if _, _, code := f.next(a, 2); code != codes.None {
		t.Errorf("the used session: error %d", code)
	}
}

func TestPartitionsOfAllSessionsAreBounded(t *testing.T) {
	f := newFixture(t, 10)
	many := make([]Partition, maxPartitions)
	for i := range many {
		many[i].Index = int32(i)
	}
	s, _ := f.Begin(Request{Epoch: Initial, Partitions: many})
	s.End()
	if s.ID == 0 {
		t.Fatal("declined at the bound")
	}
	if id := f.open(1); id != 0 {
		t.Error("a session beyond the bound was opened")
	}
	if _, code := f.Begin(Request{ID: s.ID, Epoch: 1, Partitions: []Partition{{Key: Key{Name: "new"}}}}); code != codes.FetchSessionIDNotFound {
		t.Errorf("growing beyond the bound: error %d", code)
	}
	if f.Len() != 0 || f.partitions != 0 {
		t.Errorf("%d sessions, %d partitions are counted", f.Len(), f.partitions)
	}
}

func TestRow18OneRequestAtATime(t *testing.T) {
	f := newFixture(t, 10)
	id := f.open(1)
	s, code := f.Begin(Request{ID: id, Epoch: 1})
	if code != codes.None {
		t.Fatalf("error %d", code)
	}
	if _, code := f.Begin(Request{ID: id, Epoch: 2}); code != codes.InvalidFetchSessionEpoch {
		t.Errorf("while a request is under way: error %d", code)
	}
	s.End()
	if _, _, code := f.next(id, 2); code != codes.None {
		t.Errorf("after it: error %d", code)
	}
}

func TestRow18EpochsWrap(t *testing.T) {
	if got := nextEpoch(math.MaxInt32); got != 1 {
		t.Errorf("after the largest epoch comes %d, want 1", got)
	}
}
