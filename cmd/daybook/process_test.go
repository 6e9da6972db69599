//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asDaybook makes the test binary be the command itself.
const asDaybook = "DAYBOOK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asDaybook) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is `daybook serve` in a process of its own.
type process struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	addr struct{ Kafka, HTTP string }
}

func serve(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{}
	addrs := filepath.Join(t.TempDir(), "addr.json")
	p.cmd = exec.Command(os.Args[0], "serve", "--data", dir, "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--addr-file", addrs)
	p.cmd.Env = append(os.Environ(), asDaybook+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	if data := waitFile(t, addrs); json.Unmarshal(data, &p.addr) != nil || p.addr.Kafka == "" {
		t.Fatalf("address file: %s", data)
	}
	return p
}

// waitFile waits until there is a file; it is written in one step.
func waitFile(t *testing.T, name string) []byte {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(name); err == nil {
			return data
		}
	}
	t.Fatal("the broker did not start")
	return nil
}

// end sends a signal and gives the exit code, or -1 if the signal ended it.
func (p *process) end(t *testing.T, s os.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(exit, err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func TestServeInAProcess(t *testing.T) {
	dir := t.TempDir()
	first := serve(t, dir)
	if r := daybook(t, first.addr.Kafka, "k1:hello\n", "produce", "orders", "--create", "-K", ":"); r.code != 0 {
		t.Fatalf("produce: %s", r.err)
	}

	second := daybook(t, "127.0.0.1:1", "", "serve", "--data", dir, "--kafka=127.0.0.1:0", "--http=off")
	if second.code != 1 || !strings.Contains(second.err, "in use by another process") {
		t.Errorf("a second broker on the directory: exit %d: %s", second.code, second.err)
	}

	if code := first.end(t, syscall.SIGKILL); code != -1 {
		t.Errorf("exit %d after SIGKILL", code)
	}
	again := serve(t, dir)
	if r := daybook(t, again.addr.Kafka, "", "consume", "orders", "--from", "start", "--count", "1"); r.code != 0 || !strings.Contains(r.out, "hello") {
		t.Errorf("consume after kill -9: exit %d: %s%s", r.code, r.out, r.err)
	}
	if code := again.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d after SIGTERM:\n%s", code, again.out.String())
	}
	for _, want := range []string{"is ready in", again.addr.Kafka, "msg=stopped"} {
		if !strings.Contains(again.out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, again.out.String())
		}
	}
}
