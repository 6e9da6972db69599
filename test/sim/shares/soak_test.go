//go:build soak

package shares

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/test/sim"
)

var durationFlag = flag.Duration("duration", 30*time.Minute, "how long to run rounds against processes")

// TestProcesses runs rounds against `daybook serve`, in real time, until -duration
// is over. The last round's data stays when it fails.
func TestProcesses(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "daybook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../../cmd/daybook").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	end := time.Now().Add(*durationFlag)
	for seed := *seedFlag; time.Now().Before(end) && !t.Failed(); seed++ {
		dir, err := os.MkdirTemp("", "daybook-shares-")
		if err != nil {
			t.Fatal(err)
		}
		c := sim.NewProcess(binary, dir)
		h, err := Run(c, Options{Seed: seed})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		} else {
			report(t, seed, h)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("data and log: %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
