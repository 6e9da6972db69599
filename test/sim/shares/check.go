package shares

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Kind names what is wrong.
type Kind string

// The anomalies.
const (
	Lost        Kind = "lost record"            // acknowledged, and neither delivered to its end nor dead
	AfterAccept Kind = "delivered after accept" // its acceptance was confirmed before
	TwoHolders  Kind = "two holders"            // delivered to one member while another held it
	CountBack   Kind = "delivery count"         // a later delivery does not count higher
	OverLimit   Kind = "over the limit"         // delivered more often than the limit allows
	KeyOrder    Kind = "key order"              // delivered before an earlier record of its key was settled
	Early       Kind = "too early"              // a delay was cut short
	DeadTwice   Kind = "two fates"              // accepted for sure, and dead
)

// Anomaly is one finding.
type Anomaly struct {
	Kind   Kind
	Detail string
}

func (a Anomaly) String() string { return string(a.Kind) + ": " + a.Detail }

// Verb is what a member said of a delivery.
type Verb int8

// The verbs.
const (
	None Verb = iota
	Accept
	Release
	Reject
)

// Delivery is a record as one member got it, and what became of it there.
type Delivery struct {
	Member string // one life of one member
	Offset int64
	Count  int32
	At     int64 // milliseconds
	// Verb and Settled are what the member said and when; Confirmed is when it
	// learned that this is durable, 0 if it never did.
	Verb      Verb
	Settled   int64
	Confirmed int64
}

// History is what happened with one partition of a share group.
type History struct {
	Lock    int64 // milliseconds
	Backoff int64 // before a released record is delivered again
	Limit   int32
	Ordered bool

	Keys       map[int64]string // by offset: every acknowledged record
	Deliveries []*Delivery
	Ends       map[string]int64 // when members' lives ended: what they held comes back
	Kills      []int64          // when the broker was killed or stopped: locks are gone
	Dead       map[int64]int    // offset → dead letters
}

// Check returns everything in h that cannot be.
func Check(h *History) []Anomaly {
	c := &checker{History: h, byOffset: map[int64][]*Delivery{}}
	for _, d := range h.Deliveries {
		c.byOffset[d.Offset] = append(c.byOffset[d.Offset], d)
	}
	for _, ds := range c.byOffset {
		slices.SortStableFunc(ds, func(a, b *Delivery) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Count, b.Count)) })
	}
	for _, o := range slices.Sorted(maps.Keys(c.byOffset)) {
		c.deliveries(o, c.byOffset[o])
	}
	c.fates()
	if h.Ordered {
		c.keyOrder()
	}
	return c.found
}

type checker struct {
	*History
	byOffset map[int64][]*Delivery
	found    []Anomaly
}

func (c *checker) report(k Kind, format string, args ...any) {
	c.found = append(c.found, Anomaly{k, fmt.Sprintf(format, args...)})
}

// deliveries looks at one offset's deliveries, in time order.
func (c *checker) deliveries(o int64, ds []*Delivery) {
	for i, d := range ds {
		if d.Count > c.Limit {
			c.report(OverLimit, "offset %d: delivery %d of %d", o, d.Count, c.Limit)
		}
		for _, p := range ds[:i] {
			switch {
			case p.Count >= d.Count:
				c.report(CountBack, "offset %d: delivery %d to %s at %d, after delivery %d to %s at %d", o, d.Count, d.Member, d.At, p.Count, p.Member, p.At)
			case p.Verb == Accept && p.Confirmed > 0 && p.Confirmed < d.At:
				c.report(AfterAccept, "offset %d: accepted by %s, confirmed at %d, delivered to %s at %d", o, p.Member, p.Confirmed, d.Member, d.At)
			case c.held(p, d.At):
				c.report(TwoHolders, "offset %d: delivered to %s at %d, held by %s since %d", o, d.Member, d.At, p.Member, p.At)
			case p.Verb == Release && p.Confirmed > 0 && p.Confirmed < d.At && d.At < p.Settled+c.Backoff:
				c.report(Early, "offset %d: released by %s at %d for %d ms, delivered to %s at %d", o, p.Member, p.Settled, c.Backoff, d.Member, d.At)
			}
		}
	}
}

// held reports whether delivery p certainly holds its record at time t.
func (c *checker) held(p *Delivery, t int64) bool {
	if p.Verb != None && p.Settled <= t || t >= p.At+c.Lock {
		return false
	}
	if end, ok := c.Ends[p.Member]; ok && end <= t {
		return false
	}
	return !slices.ContainsFunc(c.Kills, func(k int64) bool { return k >= p.At-1 && k <= t })
}

// fates wants every record accepted or dead in the end, and not both for sure.
func (c *checker) fates() {
	for _, o := range slices.Sorted(maps.Keys(c.Keys)) {
		accepted, sure := false, false
		for _, d := range c.byOffset[o] {
			accepted = accepted || d.Verb == Accept
			sure = sure || d.Verb == Accept && d.Confirmed > 0
		}
		switch {
		case !accepted && c.Dead[o] == 0:
			c.report(Lost, "offset %d (key %s): deliveries %s", o, c.Keys[o], describe(c.byOffset[o]))
		case sure && c.Dead[o] > 0, c.Dead[o] > 1:
			c.report(DeadTwice, "offset %d: %d dead letters, deliveries %s", o, c.Dead[o], describe(c.byOffset[o]))
		}
	}
}

// keyOrder wants that before the first delivery of a record every earlier record of
// its key had been settled for good by somebody, or had died.
func (c *checker) keyOrder() {
	earlier := map[string][]int64{}
	for _, o := range slices.Sorted(maps.Keys(c.Keys)) {
		key := c.Keys[o]
		if ds := c.byOffset[o]; len(ds) > 0 {
			for _, p := range earlier[key] {
				if !c.mayBeSettled(p, ds[0].At) {
					c.report(KeyOrder, "offset %d of key %s delivered to %s at %d, offset %d was not settled: %s", o, key, ds[0].Member, ds[0].At, p, describe(c.byOffset[p]))
				}
			}
		}
		earlier[key] = append(earlier[key], o)
	}
}

// mayBeSettled reports whether offset o can have been settled for good by time t:
// somebody said so, or its deliveries were used up.
func (c *checker) mayBeSettled(o, t int64) bool {
	return slices.ContainsFunc(c.byOffset[o], func(d *Delivery) bool {
		return d.At <= t && (d.Verb == Accept || d.Verb == Reject) && d.Settled <= t
	}) || c.Dead[o] > 0
}

func describe(ds []*Delivery) string {
	out := "none"
	for i, d := range ds {
		if i == 0 {
			out = ""
		}
		out += fmt.Sprintf("[%d to %s at %d: %s at %d, confirmed %d]", d.Count, d.Member, d.At, [...]string{"nothing", "accept", "release", "reject"}[d.Verb], d.Settled, d.Confirmed)
	}
	return out
}
