// Package daybooktest runs a real Daybook broker inside a Go test. Start gives one
// in milliseconds, on memory or on a temporary directory; it ends with the test.
// Kill and Restart show what an application makes of a broker that dies.
//
// It is the broker that `daybook serve` starts, with the same code down to the
// files; only the options that a test needs are here.
package daybooktest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/app"
	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/obs"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// stopTimeout bounds each clean stop.
const stopTimeout = 10 * time.Second

// journalFileSize keeps a broker on memory small, in bytes.
const journalFileSize = 4 << 20

// Broker is a broker under test. Its methods are called from one goroutine; what
// goes wrong ends the test.
type Broker struct {
	t      testing.TB
	config *config.Config
	log    *slog.Logger
	fs     vfs.FS
	memory *vfs.Mem // nil on disk
	app    *app.Broker
	addr   string
	seed   uint64
}

// Option changes what Start starts.
type Option func(*Broker)

// OnDisk keeps the data in a temporary directory of the test instead of memory.
func OnDisk() Option {
	return func(b *Broker) { b.fs, b.memory, b.config.DataDir = vfs.OS{}, nil, b.t.TempDir() }
}

// Partitions is how many partitions a topic gets that is created without a number.
func Partitions(n int) Option { return func(b *Broker) { b.config.DefaultPartitions = int32(n) } }

// NoAutoCreate makes the broker refuse topics that were not created first.
func NoAutoCreate() Option { return func(b *Broker) { b.config.AutoCreate = false } }

// Seed decides what Kill keeps of the writes that were not synced; 1 by default.
func Seed(n uint64) Option { return func(b *Broker) { b.seed = n } }

// LogTo writes the broker's log to w; by default it goes nowhere.
func LogTo(w io.Writer) Option {
	return func(b *Broker) { b.log = obs.NewLogger(w, slog.LevelDebug, "text") }
}

// Start starts a broker on a free port of 127.0.0.1 and stops it when the test ends.
func Start(t testing.TB, options ...Option) *Broker {
	t.Helper()
	c := config.Default()
	c.KafkaAddr, c.HTTPAddr, c.DataDir = "127.0.0.1:0", config.Off, "data"
	memory := vfs.NewMem(0)
	b := &Broker{t: t, config: c, log: slog.New(slog.DiscardHandler), fs: memory, memory: memory, seed: 1}
	for _, o := range options {
		o(b)
	}
	b.start()
	t.Cleanup(b.Stop)
	return b
}

// Addr is the broker's address, for the bootstrap servers of clients. It stays the
// same over restarts.
func (b *Broker) Addr() string { return b.addr }

// Stop stops the broker cleanly. Restart starts it again.
func (b *Broker) Stop() {
	b.t.Helper()
	if b.app == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := b.app.Stop(ctx); err != nil {
		b.t.Errorf("daybooktest: stop: %v", err)
	}
	b.app = nil
}

// Kill ends the broker as a power failure would: connections break, and what was
// not synced is lost, in part or whole. What was acknowledged is there after
// Restart. On disk only the connections break: what was written stays.
func (b *Broker) Kill() {
	b.t.Helper()
	if b.app == nil {
		return
	}
	b.app.Cut() // from here on nothing is acknowledged
	if b.memory != nil {
		b.memory = b.memory.Crash(b.seed)
		b.fs = b.memory
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	// What the old broker still writes goes to files that nobody reads again.
	_ = b.app.Stop(ctx)
	b.app = nil
}

// Restart starts the broker again over the same data, on the same address; if it
// runs, it is stopped first.
func (b *Broker) Restart() {
	b.t.Helper()
	b.Stop()
	b.start()
}

func (b *Broker) start() {
	b.t.Helper()
	running, err := app.Start(context.Background(), app.Options{
		Config: b.config, FS: b.fs, Log: b.log, Version: "test", JournalFileSize: journalFileSize,
	})
	if err != nil {
		b.t.Fatalf("daybooktest: start: %v", err)
	}
	b.app, b.addr = running, running.Addrs().Kafka
	// A restart listens where clients look.
	pinned := *b.config
	pinned.KafkaAddr = b.addr
	b.config = &pinned
}
