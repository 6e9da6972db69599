package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Process is a broker in a process of its own, over a directory. Kill is kill -9:
// what was written stays, synced or not.
type Process struct {
	binary, dir string
	cmd         *exec.Cmd
	addr        string
}

// NewProcess makes a broker that is not started, run from binary with data in dir.
func NewProcess(binary, dir string) *Process {
	return &Process{binary: binary, dir: dir, addr: "127.0.0.1:0"}
}

// Client implements Cluster.
func (p *Process) Client() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(p.addr)} }

// startLimit bounds a start, recovery included.
const startLimit = 30 * time.Second

// Start implements Cluster.
func (p *Process) Start() error {
	addrs := filepath.Join(p.dir, "addrs.json")
	if err := os.Remove(addrs); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.CommandContext(context.Background(), p.binary, "serve", "--data", filepath.Join(p.dir, "data"),
		"--kafka", p.addr, "--http", "off", "--addr-file", addrs)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		raw, err := os.ReadFile(addrs)
		if err != nil {
			continue
		}
		var found struct{ Kafka string }
		if err := json.Unmarshal(raw, &found); err != nil {
			return err
		}
		p.addr = found.Kafka // later starts listen where clients look
		return nil
	}
	return errors.Join(fmt.Errorf("the broker does not start; its log is in %s", p.dir), p.Kill())
}

// Kill implements Cluster.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }

// Stop implements Cluster.
func (p *Process) Stop() error { return p.end(syscall.SIGTERM) }

func (p *Process) end(s syscall.Signal) error {
	if p.cmd == nil {
		return nil
	}
	cmd := p.cmd
	p.cmd = nil
	if err := cmd.Process.Signal(s); err != nil {
		return err
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && s == syscall.SIGKILL && !exit.Exited() {
		return nil
	}
	return err
}

// SlowDisk implements Cluster: a process's disk is as it is.
func (p *Process) SlowDisk(time.Duration) {}
