package quota

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// fixture is a limiter with a clock of its own.
type fixture struct {
	*Limiter
	table *Table
	at    time.Time
}

func newFixture() *fixture {
	f := &fixture{table: NewTable(nil), at: time.Unix(1000, 0)}
	f.Limiter = NewLimiter(func() *Table { return f.table }, func() time.Time { return f.at })
	return f
}

func (f *fixture) set(e Entity, k Kind, v float64) {
	l := f.table.Of(e)
	l[k] = v
	f.table = f.table.With(e, l)
}

// TestPrecedence is the order of Kafka's documentation, most special first.
func TestPrecedence(t *testing.T) {
	u, c := Of("u"), Of("c")
	order := []Entity{
		{u, c}, {u, AnyOther}, {User: u}, {AnyOther, c}, {AnyOther, AnyOther}, {User: AnyOther}, {ClientID: c}, {ClientID: AnyOther},
	}
	f := newFixture()
	for i := len(order) - 1; i >= 0; i-- {
		f.set(order[i], Produce, float64(i+1))
		if _, limit, ok := f.table.find(Produce, "u", "c"); !ok || limit != float64(i+1) {
			t.Errorf("with %+v set, limit %v", order[i], limit)
		}
	}
	if _, _, ok := f.table.find(Fetch, "u", "c"); ok {
		t.Error("a limit of another kind was found")
	}
}

func TestWhoSharesALimit(t *testing.T) {
	for _, tc := range []struct {
		entity Entity
		shared bool // between u/c and u/d
		users  bool // between u/c and v/c
	}{
		{Entity{User: AnyOther}, true, false},
		{Entity{ClientID: AnyOther}, false, true},
		{Entity{AnyOther, AnyOther}, false, false},
		{Entity{User: Of("u")}, true, false},
	} {
		f := newFixture()
		f.set(tc.entity, Produce, 10)
		f.Charge(Produce, "u", "c", 200)
		if got := f.Owed(Produce, "u", "d") > 0; got != tc.shared {
			t.Errorf("%+v: another client of the user owes: %v", tc.entity, got)
		}
		if got := f.Owed(Produce, "v", "c") > 0; got != tc.users {
			t.Errorf("%+v: another user of the client id owes: %v", tc.entity, got)
		}
	}
}

func TestChargeOverTime(t *testing.T) {
	f := newFixture()
	f.set(Entity{User: AnyOther}, Produce, 100)
	for i, step := range []struct {
		after time.Duration
		bytes float64
		wait  time.Duration
	}{
		{0, 1000, 0},                                    // what was saved up
		{0, 50, 500 * time.Millisecond},                 // owed from here on
		{500 * time.Millisecond, 0, 0},                  // paid
		{0, 100, time.Second},                           //
		{2 * time.Second, 200, time.Second},             //
		{time.Hour, 1000, 0},                            // no more than the window is saved
		{0, 100, time.Second},                           //
		{0, 1e12, time.Duration(maxWait) * time.Second}, // bounded
	} {
		f.at = f.at.Add(step.after)
		if got := f.Charge(Produce, "u", "c", step.bytes); got != step.wait {
			t.Errorf("step %d: wait %v, want %v", i, got, step.wait)
		}
	}
}

func TestChangedLimitActsAtOnce(t *testing.T) {
	f := newFixture()
	if f.Charge(Produce, "u", "c", 1e9) != 0 {
		t.Error("limited without a limit")
	}
	f.set(Entity{User: Of("u")}, Produce, 10)
	f.Charge(Produce, "u", "c", 200)
	if f.Owed(Produce, "u", "c") == 0 {
		t.Error("the new limit does not act")
	}
	f.set(Entity{User: Of("u")}, Produce, 0)
	if !f.table.Empty() || f.Owed(Produce, "u", "c") != 0 {
		t.Error("the limit acts after it was taken away")
	}
}

// TestManyClientIDsCostLittle: buckets that are full again are dropped.
func TestManyClientIDsCostLittle(t *testing.T) {
	f := newFixture()
	f.set(Entity{ClientID: AnyOther}, Produce, 100)
	for i := range 20 * sweepSize {
		f.Charge(Produce, "u", fmt.Sprint(i), 10)
		f.at = f.at.Add(10 * time.Millisecond)
	}
	if n := len(f.buckets); n > sweepSize {
		t.Errorf("%d buckets are kept", n)
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		kind Kind
		v    float64
		ok   bool
	}{
		{Produce, 1024, true},
		{Produce, 0, false},
		{Produce, -1, false},
		{Fetch, 1.5, false},
		{Request, 0.5, true},
		{Mutation, 2.5, true},
		{Request, math.NaN(), false},
		{Request, math.Inf(1), false},
	} {
		if err := tc.kind.Check(tc.v); (err == nil) != tc.ok {
			t.Errorf("%v %v: %v", tc.kind, tc.v, err)
		}
	}
	for k := range numKinds {
		if got, ok := KindOf(k.String()); !ok || got != k {
			t.Errorf("%v is not found by its name", k)
		}
	}
}
