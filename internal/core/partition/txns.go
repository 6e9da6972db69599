package partition

import (
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// openTxn is a transaction that has data in this partition and no marker yet.
type openTxn struct {
	producerID int64
	first      model.Offset
}

// markerInfo is a marker batch as the machine needs it.
type markerInfo struct {
	commit           bool
	coordinatorEpoch int32
}

// abortedTxn is one entry of the aborted index. The index is ordered by last.
// stable is the last stable offset right after the abort: every later entry
// starts at or above it, which bounds the search (Kafka's transaction index).
type abortedTxn struct {
	producerID          int64
	first, last, stable model.Offset
}

// ending is a transaction whose marker is appended but not yet durable; it holds
// the last stable offset back until the marker is.
type ending struct {
	first, marker model.Offset
}

// txns is the transaction state of one partition: pure, replayable.
//
// Invariant: lso <= every first offset in open and endings.
type txns struct {
	open    []openTxn // by first offset, ascending
	endings []ending  // by marker offset, ascending
	aborted []abortedTxn
}

func (t *txns) begin(id int64, first model.Offset) {
	t.open = append(t.open, openTxn{id, first})
}

// end takes an open transaction out: its marker went to offset marker.
func (t *txns) end(e openTxn, marker model.Offset, commit bool) {
	i := slices.Index(t.open, e)
	if i < 0 {
		return
	}
	t.open = slices.Delete(t.open, i, i+1)
	t.endings = append(t.endings, ending{e.first, marker})
	if !commit {
		stable := marker + 1
		if len(t.open) > 0 {
			stable = min(stable, t.open[0].first)
		}
		t.aborted = append(t.aborted, abortedTxn{e.producerID, e.first, marker, stable})
	}
}

// durable forgets the endings whose markers are below the high watermark hwm.
func (t *txns) durable(hwm model.Offset) {
	n := 0
	for n < len(t.endings) && t.endings[n].marker < hwm {
		n++
	}
	t.endings = slices.Delete(t.endings, 0, n)
}

// lastStable is the offset that no undecided transaction reaches below.
func (t *txns) lastStable(hwm model.Offset) model.Offset {
	lso := hwm
	if len(t.open) > 0 {
		lso = min(lso, t.open[0].first)
	}
	for _, e := range t.endings {
		lso = min(lso, e.first)
	}
	return lso
}

// abortedIn lists the aborted transactions that overlap [from, upTo).
func (t *txns) abortedIn(from, upTo model.Offset) []AbortedTxn {
	i, _ := slices.BinarySearchFunc(t.aborted, from, func(a abortedTxn, o model.Offset) int {
		return int(max(-1, min(1, a.last-o)))
	})
	var out []AbortedTxn
	for _, a := range t.aborted[i:] {
		if a.first < upTo {
			out = append(out, AbortedTxn{a.producerID, a.first})
		}
		if a.stable >= upTo {
			break
		}
	}
	return out
}

// forget drops what lies wholly below the log start.
func (t *txns) forget(start model.Offset) {
	n := 0
	for n < len(t.aborted) && t.aborted[n].last < start {
		n++
	}
	if n > 0 {
		t.aborted = slices.Clone(t.aborted[n:])
	}
}

// readMarkerInfo reads a control batch; nil for control records of other kinds.
func readMarkerInfo(b model.Batch) (*markerInfo, error) {
	if !b.IsControl() {
		return nil, nil
	}
	m, ok, err := records.ReadMarker(b)
	if err != nil || !ok {
		return nil, err
	}
	return &markerInfo{m.Commit, m.CoordinatorEpoch}, nil
}
