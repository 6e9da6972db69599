//go:build unix

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Broker is what a suite runs against.
type Broker struct {
	Addr string // HOST:PORT of the Kafka listener
	Kind string // daybook, kafka, or given
	Dir  string // its data and log; empty when given

	process *Process
	restart func() error
}

// Options are what a suite needs a broker to be set to.
type Options struct {
	Advertise  string // host told to clients; empty: 127.0.0.1
	MaxMessage int    // bytes of the largest batch; 0: the default
}

// Brokers starts brokers of one kind.
type Brokers struct {
	env  *Env
	kind string
}

// NewBrokers takes daybook, kafka, or the HOST:PORT of a broker that already runs.
func NewBrokers(ctx context.Context, env *Env, kind string) (*Brokers, error) {
	switch kind {
	case "daybook":
		err := Run(ctx, Command{
			Dir: env.Tree, Env: []string{"CGO_ENABLED=0"}, Log: env.setupLog("daybook"),
			Args: []string{"go", "build", "-o", env.daybook(), "./cmd/daybook"},
		})
		return &Brokers{env, kind}, err
	case "kafka":
		return &Brokers{env, kind}, env.Install(ctx, PartJava)
	}
	if _, _, err := net.SplitHostPort(kind); err != nil {
		return nil, fmt.Errorf("-broker is daybook, kafka or HOST:PORT, not %q", kind)
	}
	return &Brokers{env, kind}, nil
}

func (e *Env) daybook() string { return filepath.Join(e.Cache, "bin", "daybook") }

// Daybook is the binary under test.
func (e *Env) Daybook() string { return e.daybook() }

// Start gives a suite a broker with an empty data folder.
func (b *Brokers) Start(ctx context.Context, suite string, o Options) (*Broker, error) {
	dir := filepath.Join(b.env.Run, "brokers", suite)
	switch b.kind {
	case "daybook":
		return startDaybook(ctx, b.env, dir, "127.0.0.1:0", o)
	case "kafka":
		return StartKafka(ctx, b.env, dir, o)
	}
	return &Broker{Addr: b.kind, Kind: "given"}, nil
}

func startDaybook(ctx context.Context, env *Env, dir, listen string, o Options) (*Broker, error) {
	addrs := filepath.Join(dir, "addresses.json")
	log := filepath.Join(dir, "broker.log")
	if err := os.RemoveAll(addrs); err != nil {
		return nil, err
	}
	args := []string{
		env.daybook(), "serve", "--data", filepath.Join(dir, "data"),
		"--kafka", listen, "--http", "127.0.0.1:0", "--addr-file", addrs,
	}
	if o.Advertise != "" {
		args = append(args, "--advertise", o.Advertise)
	}
	if o.MaxMessage > 0 {
		args = append(args, "--max-message-size", strconv.Itoa(o.MaxMessage))
	}
	p, err := Start(Command{Log: log, Args: args})
	if err != nil {
		return nil, err
	}
	b := &Broker{Kind: "daybook", Dir: dir, process: p}
	b.restart = func() error {
		next, err := startDaybook(ctx, env, dir, b.Addr, o)
		if err == nil {
			b.process = next.process
		}
		return err
	}
	err = waitFor(ctx, p, log, func() bool {
		var chosen struct{ Kafka string }
		data, err := os.ReadFile(addrs)
		if err != nil || json.Unmarshal(data, &chosen) != nil {
			return false
		}
		b.Addr = chosen.Kafka
		return b.Addr != "" && reachable(b.Addr)
	})
	return b, err
}

// waitFor a broker to serve; it is stopped when it does not within a minute.
func waitFor(ctx context.Context, p *Process, log string, ready func() bool) error {
	limit := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-p.Done():
			return fmt.Errorf("the broker ended at start:\n%s", tail(log, 20))
		case <-limit:
			p.Signal(syscall.SIGKILL)
			return fmt.Errorf("the broker did not serve within a minute:\n%s", tail(log, 20))
		case <-ctx.Done():
			p.Signal(syscall.SIGKILL)
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// Stop ends the broker as SIGTERM does. An error says that it died before, or did not end.
func (b *Broker) Stop() error {
	if b.process == nil {
		return nil
	}
	select {
	case <-b.process.Done():
		return fmt.Errorf("the broker died during the suite: %w\n%s", b.process.err, tail(filepath.Join(b.Dir, "broker.log"), 20))
	default:
	}
	err := b.process.Stop(30 * time.Second)
	if b.Kind == "kafka" {
		return nil // the JVM answers SIGTERM with status 143
	}
	return err
}

// Restart kills the broker with SIGKILL and starts it again on the same address and data.
func (b *Broker) Restart(ctx context.Context) error {
	if b.restart == nil {
		return fmt.Errorf("a broker that was given cannot be restarted")
	}
	b.process.Signal(syscall.SIGKILL)
	<-b.process.Done()
	return b.restart()
}

// Discard removes the data of a stopped broker; the log stays.
func (b *Broker) Discard() {
	if b.Dir != "" {
		os.RemoveAll(filepath.Join(b.Dir, "data"))
	}
}

func reachable(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// freePort asks the system for a port of the loopback interface.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
