package sim

import (
	"flag"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/daybook-mq/daybook/internal/obs"
	"github.com/daybook-mq/daybook/test/sim/history"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "the seed of the first round")
	roundsFlag = flag.Int("rounds", 3, "how many rounds to run, each with the next seed")
	logFlag    = flag.Bool("brokerlog", false, "show the broker's log")
)

// TestHistories runs rounds in memory, in virtual time.
func TestHistories(t *testing.T) {
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			if *logFlag {
				log = obs.NewLogger(t.Output(), slog.LevelDebug, "text")
			}
			c := NewMemory(seed, log)
			h, err := Run(c, Options{Seed: seed, Log: log})
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
			report(t, seed, h)
		})
	}
}

// report shows what is wrong with a history, and how to see it again.
func report(t *testing.T, seed uint64, h *history.History) {
	t.Helper()
	acked, committed := 0, 0
	for _, w := range h.Writes {
		if w.Outcome == history.OK {
			acked++
		}
	}
	for _, x := range h.Txns {
		if x.Commit && x.Outcome == history.OK {
			committed++
		}
	}
	t.Logf("seed %d: %d writes (%d acknowledged), %d transactions (%d committed), %d reads, %d offset fetches", seed,
		len(h.Writes), acked, len(h.Txns), committed, len(h.Reads), len(h.Offsets))
	as := history.Check(h)
	for i, a := range as {
		if i == 20 {
			t.Errorf("... and %d more", len(as)-i)
			break
		}
		t.Errorf("%v", a)
	}
	if len(as) > 0 {
		t.Errorf("again: go test ./test/sim -run TestHistories -rounds=1 -seed=%d", seed)
	}
	if acked == 0 || committed == 0 || len(h.Reads) == 0 {
		t.Errorf("seed %d: nothing happened", seed)
	}
}
