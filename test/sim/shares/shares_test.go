package shares

import (
	"flag"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/daybook-mq/daybook/internal/obs"
	"github.com/daybook-mq/daybook/test/sim"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "the seed of the first round")
	roundsFlag = flag.Int("rounds", 4, "how many rounds to run, each with the next seed")
	logFlag    = flag.Bool("brokerlog", false, "show the broker's log")
)

// TestAccounting runs rounds in memory, in virtual time; even seeds keep keys in order.
func TestAccounting(t *testing.T) {
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		synctest.Test(t, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			if *logFlag {
				log = obs.NewLogger(t.Output(), slog.LevelDebug, "text")
			}
			c := sim.NewMemory(seed, log)
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

func report(t *testing.T, seed uint64, h *History) {
	t.Helper()
	t.Logf("seed %d: %d records, %d deliveries, %d dead, %d kills", seed, len(h.Keys), len(h.Deliveries), len(h.Dead), len(h.Kills)/2)
	as := Check(h)
	for i, a := range as {
		if i == 20 {
			t.Errorf("... and %d more", len(as)-i)
			break
		}
		t.Errorf("%v", a)
	}
	if len(as) > 0 {
		t.Errorf("again: go test ./test/sim/shares -run TestAccounting -rounds=1 -seed=%d", seed)
	}
	if len(h.Keys) == 0 || len(h.Deliveries) < len(h.Keys) {
		t.Errorf("seed %d: nothing happened", seed)
	}
}
