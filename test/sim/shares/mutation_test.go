//go:build mutation

package shares

import (
	"testing"

	"github.com/daybook-mq/daybook/test/sim/mutant"
)

const (
	acquireFile = "internal/core/ledger/acquire.go"
	settleFile  = "internal/core/ledger/settle.go"
)

var mutations = []mutant.Mutation{
	{Name: "lock check off", Edits: []mutant.Edit{
		{File: acquireFile, Old: "ok && r.state == Ready {", New: "ok && (r.state == Ready || r.state == Acquired) {"},
	}, Want: []string{string(TwoHolders)}},
	{Name: "count not persisted", Edits: []mutant.Edit{
		{File: acquireFile, Old: "ch.delta(s, run{state: Ready, count: next.count})", New: "ch.delta(s, run{state: Ready})"},
	}, Want: []string{string(CountBack)}},
	{Name: "key unlocked early", Edits: []mutant.Edit{
		{
			File: settleFile, Old: "	if next.state == Delayed {\n		l.alarm(until, s.First)\n		if l.cfg.KeyOrder && l.cfg.DelayLetsPass {\n",
			New: "	if next.state == Delayed {\n		l.alarm(until, s.First)\n		if l.cfg.KeyOrder {\n",
		},
	}, Want: []string{string(KeyOrder)}},
}

// TestMutations wants the accounting to find each guard that is missing.
func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.Name, func(t *testing.T) { m.Run(t, "TestAccounting", "20") })
	}
}
