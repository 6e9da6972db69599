//go:build mutation

package sim

import (
	"testing"

	"github.com/daybook-mq/daybook/test/sim/history"
	"github.com/daybook-mq/daybook/test/sim/mutant"
)

const (
	producersFile = "internal/core/partition/producers.go"
	machineFile   = "internal/core/txn/machine.go"
	finishFile    = "internal/core/txn/finish.go"
	txnsFile      = "internal/core/partition/txns.go"
	commitFile    = "internal/storage/journal/commit.go"
)

var mutations = []mutant.Mutation{
	{Name: "sequence check off", Edits: []mutant.Edit{
		{File: producersFile, Old: "w.firstSeq == first && w.lastSeq == last {", New: "w.firstSeq == first && w.lastSeq == last && false {"},
		{File: producersFile, Old: "case !followsSequence(p.lastSeq(), first):", New: "case false:"},
	}, Want: kinds(history.Duplicate, history.ProducerOrder)},
	{Name: "last stable offset off", Edits: []mutant.Edit{
		{File: txnsFile, Old: "		lso = min(lso, t.open[0].first)", New: "		lso = min(lso, hwm)"},
	}, Want: kinds(history.AbortedRead, history.DirtyRead)},
	{Name: "epoch check off", Edits: []mutant.Edit{
		{File: producersFile, Old: "if p != nil && b.ProducerEpoch() < p.epoch {", New: "if false {"},
		{File: machineFile, Old: "	case t.Epoch != epoch:\n", New: "	case false:\n"},
		{File: machineFile, Old: "	if t.Epoch != c.Epoch {\n", New: "	if false {\n"},
		{File: machineFile, Old: "if t.Epoch != c.Epoch || t.State.Preparing() {", New: "if false {"},
	}, Want: kinds(history.LostWrite, history.TornTxn, history.ProcessedTwo, history.LostOffset)},
	{Name: "marker written before offsets", Edits: []mutant.Edit{
		{File: finishFile, Old: "	markers := c.resolve(prep, prep.Parts)\n", New: `	markers := c.resolve(prep, prep.Parts)
	var early []marker
	for _, m := range markers {
		if m.ended.Topic != "__consumer_offsets" {
			early = append(early, m)
		}
	}
	if t, _, err := c.submitLocked(s, c.markerItems(s, early), early); err == nil && t != nil {
		s.mu.Unlock() // a mutex held over a wait would stop the bubble's time
		<-t.done
		s.mu.Lock()
	}
`},
	}, Want: kinds(history.ProcessedTwo, history.NotProcessed, history.TornTxn, history.Resurrected, history.LostWrite)},
	{Name: "fsync off", Edits: []mutant.Edit{
		{File: commitFile, Old: "	if err := c.cur.f.SyncData(); err != nil {\n", New: "	if err := error(nil); err != nil {\n"},
	}, Want: kinds(history.LostWrite, history.LostOffset, history.TwoValues, damaged)},
}

// damaged is how a restart names what it misses on the disk.
const damaged history.Kind = "or see `daybook log repair`"

func kinds(ks ...history.Kind) (names []string) {
	for _, k := range ks {
		names = append(names, string(k))
	}
	return names
}

// TestMutations wants the simulator to find each guard that is missing.
func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.Name, func(t *testing.T) { m.Run(t, "TestHistories", "100") })
	}
}
