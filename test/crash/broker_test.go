package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// broker is `daybook serve` over one directory, started and killed many times.
type broker struct {
	binary, dir string
	args        []string
	addr        string
	cmd         *exec.Cmd
}

func newBroker(t *testing.T, args ...string) *broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "daybook-crash-")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{binary: build(t), dir: dir, args: args, addr: "127.0.0.1:0"}
	t.Cleanup(func() {
		b.kill()
		if t.Failed() {
			t.Logf("data and log: %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return b
}

var built string // the binary, in a folder that TestMain removes

func build(t *testing.T) string {
	t.Helper()
	if built != "" {
		return built
	}
	dir, err := os.MkdirTemp("", "daybook-bin-")
	if err != nil {
		t.Fatal(err)
	}
	built = filepath.Join(dir, "daybook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, "github.com/daybook-mq/daybook/cmd/daybook").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return built
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

func (b *broker) addrFile() string { return filepath.Join(b.dir, "addr.json") }

// launch starts the process and does not wait for it to serve.
func (b *broker) launch() error {
	if err := os.Remove(b.addrFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd = exec.Command(b.binary, append([]string{
		"serve", "--data", filepath.Join(b.dir, "data"), "--kafka", b.addr, "--http", "off", "--addr-file", b.addrFile(),
	}, b.args...)...)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	return b.cmd.Start()
}

// startLimit bounds a start, recovery included.
const startLimit = time.Minute

func (b *broker) start() error {
	if err := b.launch(); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		raw, err := os.ReadFile(b.addrFile())
		if err != nil {
			continue
		}
		var found struct{ Kafka string }
		if err := json.Unmarshal(raw, &found); err != nil {
			return err
		}
		b.addr = found.Kafka
		return nil
	}
	return fmt.Errorf("the broker does not start; its log is in %s", b.dir)
}

// kill ends the process as kill -9 does.
func (b *broker) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait() // "signal: killed"
		b.cmd = nil
	}
}
