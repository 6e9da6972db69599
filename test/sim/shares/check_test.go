package shares

import "testing"

// Each bad history is found for what it is, and a good one is not blamed.
func TestCheck(t *testing.T) {
	d := func(member string, offset int64, count int32, at int64, v Verb, settled, confirmed int64) *Delivery {
		return &Delivery{member, offset, count, at, v, settled, confirmed}
	}
	two := map[int64]string{0: "k", 1: "k"}
	for _, c := range []struct {
		name string
		h    History
		want Kind
	}{
		{"good", History{Keys: two, Ordered: true, Deliveries: []*Delivery{
			d("a", 0, 1, 10, Release, 12, 13), d("b", 0, 2, 70, Accept, 75, 76), d("a", 1, 1, 80, Accept, 81, 0),
		}}, ""},
		{"lock ran out", History{Keys: map[int64]string{0: ""}, Deliveries: []*Delivery{
			d("a", 0, 1, 10, None, 0, 0), d("b", 0, 2, 120, Accept, 125, 126),
		}}, ""},
		{"broker killed", History{Keys: map[int64]string{0: ""}, Kills: []int64{15}, Deliveries: []*Delivery{
			d("a", 0, 1, 10, None, 0, 0), d("b", 0, 2, 20, Accept, 25, 26),
		}}, ""},
		{"lost", History{Keys: map[int64]string{0: ""}}, Lost},
		{"only released", History{Keys: map[int64]string{0: ""}, Deliveries: []*Delivery{d("a", 0, 1, 10, Release, 11, 12)}}, Lost},
		{"dead", History{Keys: map[int64]string{0: ""}, Dead: map[int64]int{0: 1}}, ""},
		{"dead twice", History{Keys: map[int64]string{0: ""}, Dead: map[int64]int{0: 2}}, DeadTwice},
		{"accepted and dead", History{Keys: map[int64]string{0: ""}, Dead: map[int64]int{0: 1}, Deliveries: []*Delivery{d("a", 0, 1, 10, Accept, 11, 12)}}, DeadTwice},
		{"after accept", History{Deliveries: []*Delivery{d("a", 0, 1, 10, Accept, 11, 12), d("b", 0, 2, 20, Accept, 21, 22)}}, AfterAccept},
		{"two holders", History{Deliveries: []*Delivery{d("a", 0, 1, 10, None, 0, 0), d("b", 0, 2, 20, Accept, 21, 22)}}, TwoHolders},
		{"count stands", History{Deliveries: []*Delivery{d("a", 0, 1, 10, Release, 11, 0), d("b", 0, 1, 120, Accept, 121, 122)}}, CountBack},
		{"over the limit", History{Deliveries: []*Delivery{d("a", 0, 9, 10, Accept, 11, 12)}}, OverLimit},
		{"early", History{Deliveries: []*Delivery{d("a", 0, 1, 10, Release, 11, 12), d("b", 0, 2, 40, Accept, 41, 42)}}, Early},
		{"key order", History{Keys: two, Ordered: true, Deliveries: []*Delivery{
			d("a", 0, 1, 10, Release, 11, 0), d("b", 1, 1, 20, Accept, 21, 22), d("b", 0, 2, 200, Accept, 201, 202),
		}}, KeyOrder},
	} {
		c.h.Lock, c.h.Backoff, c.h.Limit = 100, 50, 5
		got := Check(&c.h)
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %v", c.name, got)
		case c.want != "" && (len(got) == 0 || got[0].Kind != c.want):
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}
