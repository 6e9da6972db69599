package history

import (
	"slices"
	"testing"
)

var (
	in  = Part{"in", 0}
	out = Part{"out", 0}
	alt = Part{"out", 1}
)

// good is a small history without fault: two plain writes to in; a processor that
// copies both to out with its offsets, one transaction each; a transaction that
// is aborted; a reader of each isolation.
//
//	in:  0: 1   1: 2
//	out: 0: 11  1: marker  2: 99 (aborted)  3: marker  4: 12  5: marker
func good() *History {
	h := &History{Final: Final{
		Log:     map[Part][]Record{in: {{0, 1}, {1, 2}}, out: {{0, 11}, {4, 12}}},
		Offsets: map[string]map[Part]int64{"g": {in: 2}},
	}}
	write := func(producer string, t *Txn, p Part, value int64, src *Source, offset int64) {
		w := &Write{Producer: producer, Txn: t, Part: p, Value: value, Source: src}
		h.Invoke(w)
		h.Complete(w, OK, offset)
	}
	copyRecord := func(value, from, to int64) {
		t := h.AddTxn("copy")
		write("copier", t, out, value, &Source{"g", in, from}, to)
		cm := &OffsetCommit{Group: "g", Part: in, Offset: from + 1, Txn: t}
		h.InvokeCommit(cm)
		h.CompleteCommit(cm, OK)
		h.EndTxn(t, true)
		h.TxnEnded(t, OK)
	}
	read := func(who string, committed bool, p Part, from, next int64, rs ...Record) {
		h.AddRead(Read{Consumer: who, Part: p, Committed: committed, Invoked: h.Now(), From: from, Next: next, Records: rs})
	}
	fetch := func(o int64) { h.AddOffsetRead(OffsetRead{Group: "g", Part: in, Offset: o, Invoked: h.Now()}) }

	write("plain", nil, in, 1, nil, 0)
	write("plain", nil, in, 2, nil, 1)
	fetch(-1)
	copyRecord(11, 0, 0)
	fetch(1)
	bad := h.AddTxn("bad")
	write("copier", bad, out, 99, nil, 2)
	read("dirty", false, out, 0, 3, Record{0, 11}, Record{2, 99})
	read("clean", true, out, 0, 2, Record{0, 11})
	h.EndTxn(bad, false)
	h.TxnEnded(bad, OK)
	copyRecord(12, 1, 4)
	fetch(2)
	read("clean", true, out, 2, 6, Record{4, 12})
	return h
}

func kinds(as []Anomaly) []Kind {
	var ks []Kind
	for _, a := range as {
		ks = append(ks, a.Kind)
	}
	slices.Sort(ks)
	return slices.Compact(ks)
}

func TestCheckFindsNothingInAGoodHistory(t *testing.T) {
	if as := Check(good()); len(as) > 0 {
		t.Fatal(as)
	}
}

// value finds the write of a value.
func (h *History) value(v int64) *Write {
	i := slices.IndexFunc(h.Writes, func(w *Write) bool { return w.Value == v })
	return h.Writes[i]
}

func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(h *History)
		want []Kind
	}{
		{"a read of an aborted value", func(h *History) {
			h.Reads[2].Records = []Record{{2, 99}, {4, 12}}
		}, []Kind{AbortedRead}},
		{"a read of a transaction that nobody ended", func(h *History) {
			h.Txns[1].Ended, h.Txns[1].Outcome = 0, Unknown
			h.Reads[2].Records = []Record{{2, 99}, {4, 12}}
		}, []Kind{AbortedRead}},
		{"a read before the commit", func(h *History) {
			h.Reads[1].Next, h.Reads[1].Records = 5, []Record{{0, 11}, {4, 12}}
			h.Reads[2].From, h.Reads[2].Records = 5, nil
		}, []Kind{DirtyRead}},
		{"a value from nowhere", func(h *History) {
			h.Reads[0].Records[1].Value = 77
		}, []Kind{TwoValues, UnknownValue}},
		{"an acknowledgement that readers contradict", func(h *History) {
			h.value(12).Offset = 0
		}, []Kind{TwoValues, WriteOrder}},
		{"a plain write that is gone", func(h *History) {
			h.Final.Log[in] = h.Final.Log[in][:1]
		}, []Kind{LostWrite}},
		{"a committed write that is gone", func(h *History) {
			h.Final.Log[out] = h.Final.Log[out][:1]
		}, []Kind{LostWrite, NotProcessed}},
		{"a refused write that is there", func(h *History) {
			h.value(2).Outcome = Failed
		}, []Kind{Resurrected}},
		{"an aborted write that is there", func(h *History) {
			h.Final.Log[out] = []Record{{0, 11}, {2, 99}, {4, 12}}
		}, []Kind{Gap, Resurrected}},
		{"a write that is there twice", func(h *History) {
			h.Final.Log[in] = append(h.Final.Log[in], Record{2, 2})
		}, []Kind{Duplicate}},
		{"a write in another partition", func(h *History) {
			h.Final.Log[alt] = []Record{{0, 50}}
			w := &Write{Producer: "plain", Part: in, Value: 50}
			h.Invoke(w)
		}, []Kind{UnknownValue}},
		{"a producer's writes exchanged", func(h *History) {
			h.value(1).Outcome, h.value(2).Outcome = Unknown, Unknown
			h.Final.Log[in] = []Record{{0, 2}, {1, 1}}
		}, []Kind{ProducerOrder}},
		{"a write before one that was over", func(h *History) {
			h.value(2).Producer = "other"
			h.value(1).Offset, h.value(2).Offset = 1, 0
			h.Final.Log[in] = []Record{{0, 2}, {1, 1}}
		}, []Kind{WriteOrder}},
		{"a read that leaves something out", func(h *History) {
			h.Reads[2].Records = nil
		}, []Kind{Gap}},
		{"a reader that jumps", func(h *History) {
			h.Reads[2].From = 4
		}, []Kind{ReadBack}},
		{"a read outside its range", func(h *History) {
			h.Reads[2].Records = []Record{{0, 11}, {4, 12}}
		}, []Kind{ReadBack}},
		{"half of a transaction in doubt", func(h *History) {
			h.Txns[2].Outcome = Unknown
			w := &Write{Producer: "copier", Txn: h.Txns[2], Part: alt, Value: 13}
			h.Invoke(w)
			h.Complete(w, OK, 0)
		}, []Kind{TornTxn}},
		{"half of a committed transaction", func(h *History) {
			w := &Write{Producer: "copier", Txn: h.Txns[2], Part: alt, Value: 13}
			h.Invoke(w)
			h.Complete(w, OK, 0)
		}, []Kind{LostWrite, TornTxn}},
		{"an open transaction", func(h *History) {
			h.Final.Open = []string{"bad"}
		}, []Kind{OpenTxn}},
		{"a position that went back", func(h *History) {
			h.Commits[1].Outcome = Unknown
			h.Offsets[2].Offset = 0
		}, []Kind{LostOffset, OffsetBack}},
		{"a position that went back unseen by its committer", func(h *History) {
			h.Commits[0].Outcome, h.Commits[1].Outcome = Unknown, Unknown
			h.Offsets[2].Offset = 0
		}, []Kind{OffsetBack}},
		{"a position that is lost in the end", func(h *History) {
			h.Final.Offsets["g"][in] = 1
		}, []Kind{LostOffset, OffsetBack, ProcessedTwo}},
		{"an input processed twice", func(h *History) {
			h.value(12).Source.Offset = 0
		}, []Kind{NotProcessed, ProcessedTwo}},
		{"an input passed over", func(h *History) {
			h.value(12).Source = nil
		}, []Kind{NotProcessed}},
		{"an output whose offsets were not committed with it", func(h *History) {
			h.Commits[1].Outcome = Unknown
			h.Offsets = h.Offsets[:2]
			h.Final.Offsets["g"][in] = 1
		}, []Kind{ProcessedTwo}},
	} {
		h := good()
		c.edit(h)
		as := Check(h)
		if got := kinds(as); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v\n%v", c.name, got, c.want, as)
		}
	}
}

// TestCheckAllowsDoubt: what is in doubt may be there or not.
func TestCheckAllowsDoubt(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(h *History)
	}{
		{"a commit without an answer that happened", func(h *History) { h.Txns[2].Outcome = Unknown }},
		{"a commit without an answer that did not happen", func(h *History) {
			h.Txns[2].Outcome = Unknown
			h.Final.Log[out] = h.Final.Log[out][:1]
			h.Final.Offsets["g"][in] = 1
			h.Reads, h.Offsets = h.Reads[:2], h.Offsets[:2]
		}},
		{"a write without an answer that is there", func(h *History) { h.value(2).Outcome = Unknown }},
		{"a write without an answer that is not there", func(h *History) {
			w := &Write{Producer: "plain", Part: in, Value: 3}
			h.Invoke(w)
		}},
		{"writes at the same time in any order", func(h *History) {
			w := &Write{Producer: "other", Part: in, Value: 3}
			h.Invoke(w)
			h.Complete(w, OK, 2)
			w.Invoked = h.value(1).Invoked
			h.Final.Log[in] = append(h.Final.Log[in], Record{2, 3})
		}},
	} {
		h := good()
		c.edit(h)
		if as := Check(h); len(as) > 0 {
			t.Errorf("%s: %v", c.name, as)
		}
	}
}
