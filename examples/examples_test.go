// Package examples holds runnable programs, one for each delivery guarantee.
package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/daybooktest"
)

// Each program processes all orders against a broker; run again, it finds none.
func TestProgramsProcessEveryOrder(t *testing.T) {
	broker := daybooktest.Start(t)
	for _, name := range []string{"atmostonce", "atleastonce", "exactlyonce"} {
		bin := filepath.Join(t.TempDir(), name)
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./"+name).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, bin, "-broker", broker.Addr(), "-n", "50").CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), "charged") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	lag, err := kadm.NewClient(cl).Lag(t.Context(), "at-most-once", "at-least-once", "exactly-once")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lag.Sorted() {
		if n := l.Lag.Total(); n != 0 {
			t.Errorf("group %s is %d orders behind", l.Group, n)
		}
	}
}

// The programs in other languages are run by the compatibility suites; here, that
// they are what the README names.
func TestReadmeNamesEveryProgram(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"exactlyonce/python/exactly_once.py", "exactlyonce/java"} {
		if _, err := os.Stat(path); err != nil || !strings.Contains(string(text), path) {
			t.Errorf("%s: missing, or not in the README (%v)", path, err)
		}
	}
}
