package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind names what is wrong.
type Kind string

// The anomalies.
const (
	AbortedRead   Kind = "aborted read"          // read_committed saw what was not committed
	DirtyRead     Kind = "dirty read"            // ... before its commit was even asked for
	UnknownValue  Kind = "unknown value"         // nobody wrote it
	TwoValues     Kind = "two values per offset" // readers or acknowledgements disagree
	LostWrite     Kind = "lost write"            // acknowledged, and not there in the end
	Resurrected   Kind = "resurrected write"     // refused or aborted, and there in the end
	Duplicate     Kind = "duplicate"             // one write at two offsets
	ProducerOrder Kind = "producer order"        // a producer's writes changed places
	WriteOrder    Kind = "write order"           // a write lies before one that was over when it began
	Gap           Kind = "gap in a read"         // a reader was not given what lay in its range
	ReadBack      Kind = "read went back"        // a reader's position jumped
	TornTxn       Kind = "torn transaction"      // some of its writes are there, others are not
	OffsetBack    Kind = "offset went back"      // a group's position became smaller
	LostOffset    Kind = "lost offset"           // an acknowledged position is not there
	ProcessedTwo  Kind = "processed twice"       // two outputs of one input
	NotProcessed  Kind = "not processed"         // a position passed an input without output
	OpenTxn       Kind = "transaction left open" // nobody will end it
)

// Anomaly is one finding.
type Anomaly struct {
	Kind   Kind
	Detail string
}

func (a Anomaly) String() string { return string(a.Kind) + ": " + a.Detail }

// checker is a history with its indexes.
type checker struct {
	*History
	byValue map[int64]*Write
	final   map[int64][]place // value → where it is in the final log
	found   []Anomaly
}

// place is a value's place in the final log.
type place struct {
	part   Part
	offset int64
}

// Check returns everything in h that cannot be. Acknowledged cycles need no search
// of their own: DirtyRead and WriteOrder make every dependency point forward in
// time, so that there are none without one of them.
func Check(h *History) []Anomaly {
	c := &checker{History: h, byValue: map[int64]*Write{}, final: map[int64][]place{}}
	for _, w := range h.Writes {
		c.byValue[w.Value] = w
	}
	for part, rs := range h.Final.Log {
		for _, r := range rs {
			c.final[r.Value] = append(c.final[r.Value], place{part, r.Offset})
		}
	}
	for _, check := range []func(){
		c.committedReads, c.oneValuePerOffset, c.finalWrites, c.producerOrder, c.writeOrder,
		c.contiguity, c.positions, c.transactions, c.offsetsForward, c.offsetsKept, c.processing,
	} {
		check()
	}
	return c.found
}

func (c *checker) report(k Kind, format string, args ...any) {
	c.found = append(c.found, Anomaly{k, fmt.Sprintf(format, args...)})
}

// committedReads: read_committed sees only values of transactions whose commit was
// asked for before the read was over, and does not see what was refused.
func (c *checker) committedReads() {
	for _, r := range c.Reads {
		for _, rec := range r.Records {
			w := c.byValue[rec.Value]
			switch {
			case w == nil:
				c.report(UnknownValue, "%s read value %d at %v@%d", r.Consumer, rec.Value, r.Part, rec.Offset)
			case !r.Committed || w.Txn == nil:
			case w.Txn.Ended == 0 || !w.Txn.mayBeCommitted():
				c.report(AbortedRead, "%s read value %d at %v@%d of %s", r.Consumer, rec.Value, r.Part, rec.Offset, w.Txn.Name)
			case w.Txn.Ended > r.Completed:
				c.report(DirtyRead, "%s read value %d at %v@%d before %s was to commit", r.Consumer, rec.Value, r.Part, rec.Offset, w.Txn.Name)
			}
		}
	}
}

// oneValuePerOffset: everybody who names an offset names the same value.
func (c *checker) oneValuePerOffset() {
	seen := map[place]int64{}
	note := func(part Part, offset, value int64, who string) {
		p := place{part, offset}
		if old, ok := seen[p]; ok && old != value {
			c.report(TwoValues, "%v@%d is %d and, for %s, %d", part, offset, old, who, value)
			return
		}
		seen[p] = value
	}
	for part, rs := range c.Final.Log {
		for _, r := range rs {
			note(part, r.Offset, r.Value, "the final log")
		}
	}
	for _, r := range c.Reads {
		for _, rec := range r.Records {
			note(r.Part, rec.Offset, rec.Value, r.Consumer)
		}
	}
	for _, w := range c.Writes {
		if w.Outcome == OK {
			note(w.Part, w.Offset, w.Value, w.Producer)
		}
	}
}

// finalWrites: what was acknowledged and committed is in the final log, what
// cannot be is not, and nothing is there twice.
func (c *checker) finalWrites() {
	for _, w := range c.Writes {
		at := c.final[w.Value]
		committed := w.Txn == nil || w.Txn.mustBeCommitted()
		possible := w.Outcome != Failed && (w.Txn == nil || w.Txn.mayBeCommitted())
		switch {
		case len(at) > 1:
			c.report(Duplicate, "value %d of %s is at %v", w.Value, w.Producer, at)
		case len(at) == 0 && w.Outcome == OK && committed:
			c.report(LostWrite, "value %d of %s, acknowledged at %v@%d", w.Value, w.Producer, w.Part, w.Offset)
		case len(at) == 1 && !possible:
			c.report(Resurrected, "value %d of %s is at %v", w.Value, w.Producer, at)
		case len(at) == 1 && at[0].part != w.Part:
			c.report(UnknownValue, "value %d was written to %v and is at %v", w.Value, w.Part, at)
		}
	}
	for value, at := range c.final {
		if c.byValue[value] == nil {
			c.report(UnknownValue, "value %d is at %v and nobody wrote it", value, at)
		}
	}
}

// producerOrder: the writes of one producer to one partition lie in the order in
// which they were asked for.
func (c *checker) producerOrder() {
	type key struct {
		producer string
		part     Part
	}
	last := map[key]*Write{}
	for _, w := range c.Writes { // in the order of Invoked
		at := c.final[w.Value]
		if len(at) != 1 || at[0].part != w.Part {
			continue
		}
		k := key{w.Producer, w.Part}
		if p := last[k]; p != nil && c.final[p.Value][0].offset > at[0].offset {
			c.report(ProducerOrder, "%s wrote %d and then %d to %v; they are at %d and %d",
				w.Producer, p.Value, w.Value, w.Part, c.final[p.Value][0].offset, at[0].offset)
		}
		last[k] = w
	}
}

// writeOrder: a write that began after another was acknowledged lies behind it,
// whoever wrote them.
func (c *checker) writeOrder() {
	byPart := map[Part][]*Write{}
	for _, w := range c.Writes {
		if w.Outcome == OK {
			byPart[w.Part] = append(byPart[w.Part], w)
		}
	}
	for part, ws := range byPart {
		// In offset order, nothing may complete before something earlier was invoked.
		slices.SortFunc(ws, func(a, b *Write) int { return cmp.Compare(a.Offset, b.Offset) })
		latest := ws[0]
		for _, w := range ws[1:] {
			if w.Completed < latest.Invoked {
				c.report(WriteOrder, "value %d at %v@%d was over before value %d at %d began", w.Value, part, w.Offset, latest.Value, latest.Offset)
			}
			if w.Invoked > latest.Invoked {
				latest = w
			}
		}
	}
}

// contiguity: a read returns everything that its range holds in the end.
func (c *checker) contiguity() {
	for _, r := range c.Reads {
		got := map[int64]bool{}
		for _, rec := range r.Records {
			if rec.Offset < r.From || rec.Offset >= r.Next {
				c.report(ReadBack, "%s read %v@%d outside %d to %d", r.Consumer, r.Part, rec.Offset, r.From, r.Next)
			}
			got[rec.Offset] = true
		}
		log := c.Final.Log[r.Part]
		i, _ := slices.BinarySearchFunc(log, r.From, func(a Record, o int64) int { return cmp.Compare(a.Offset, o) })
		for ; i < len(log) && log[i].Offset < r.Next; i++ {
			if !got[log[i].Offset] {
				c.report(Gap, "%s read %v from %d to %d without %d", r.Consumer, r.Part, r.From, r.Next, log[i].Offset)
			}
		}
	}
}

// positions: each read of a consumer begins where the one before ended, and its
// records come in order.
func (c *checker) positions() {
	type key struct {
		consumer string
		part     Part
	}
	next := map[key]int64{}
	for _, r := range c.Reads {
		k := key{r.Consumer, r.Part}
		if n, ok := next[k]; ok && n != r.From {
			c.report(ReadBack, "%s was at %v@%d and went on at %d", r.Consumer, r.Part, n, r.From)
		}
		next[k] = r.Next
		if !slices.IsSortedFunc(r.Records, func(a, b Record) int { return cmp.Compare(a.Offset, b.Offset) }) {
			c.report(ReadBack, "%s got %v out of order: %v", r.Consumer, r.Part, r.Records)
		}
	}
}

// transactions: of the acknowledged writes of a transaction and its offsets all
// are there or none, and none is left open.
func (c *checker) transactions() {
	in, out := map[*Txn]*Write{}, map[*Txn]*Write{}
	for _, w := range c.Writes {
		if w.Txn == nil || w.Outcome != OK {
			continue
		}
		if len(c.final[w.Value]) > 0 {
			in[w.Txn] = w
		} else {
			out[w.Txn] = w
		}
	}
	for t, w := range in {
		if o := out[t]; o != nil {
			c.report(TornTxn, "%s: value %d is there, %d is not", t.Name, w.Value, o.Value)
		}
	}
	for _, name := range c.Final.Open {
		c.report(OpenTxn, "%s", name)
	}
}
