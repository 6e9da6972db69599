package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/app"
	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Cluster is a broker that can be hurt. Its methods are called from one goroutine,
// except for Client.
type Cluster interface {
	// Client gives the options with which a client finds the broker.
	Client() []kgo.Opt
	// Kill ends the broker at once; what was not durable is lost.
	Kill() error
	// Stop ends it in good order.
	Stop() error
	// Start starts it again over its data.
	Start() error
	// SlowDisk makes every sync take up to d longer, if that can be done.
	SlowDisk(d time.Duration)
}

// memAddr is where the broker in memory listens.
const memAddr = "127.0.0.1:9092"

// Memory is a broker in this process, over a disk and a network in memory.
type Memory struct {
	net   *memNet
	disk  *vfs.Mem
	fault func(vfs.FS) vfs.FS // what stands between the broker and its disk
	log   *slog.Logger
	seeds *rand.Rand
	slow  atomic.Int64 // nanoseconds a sync may take
	app   *app.Broker
}

// NewMemory makes a broker that is not started; crashes are drawn from seed.
func NewMemory(seed uint64, log *slog.Logger) *Memory {
	return &Memory{
		net: newMemNet(), disk: vfs.NewMem(0), log: log,
		seeds: rand.New(rand.NewPCG(seed, 0xd15c)),
	}
}

// Client implements Cluster.
func (m *Memory) Client() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(memAddr), kgo.Dialer(m.net.dial)}
}

// Start implements Cluster.
func (m *Memory) Start() error {
	c := config.Default()
	c.KafkaAddr, c.HTTPAddr, c.DataDir = memAddr, config.Off, "data"
	var fs vfs.FS = vfs.NewSlow(m.disk, m.delay)
	if m.fault != nil {
		fs = m.fault(fs)
	}
	var err error
	m.app, err = app.Start(context.Background(), app.Options{
		Config: c, FS: fs, Log: m.log, Version: "sim", Listen: m.net.listen, JournalFileSize: 4 << 20,
	})
	return err
}

func (m *Memory) delay() time.Duration {
	most := m.slow.Load()
	return time.Duration(rand.Int64N(most + int64(time.Millisecond)))
}

// SlowDisk implements Cluster.
func (m *Memory) SlowDisk(d time.Duration) { m.slow.Store(int64(d)) }

// Kill implements Cluster: the disk is as a power failure leaves it.
func (m *Memory) Kill() error {
	m.app.Cut() // from here on nothing is acknowledged
	old := m.app
	m.disk, m.app = m.disk.Crash(m.seeds.Uint64()), nil
	_ = old.Stop(context.Background()) // over files that nobody reads again
	return nil
}

// Stop implements Cluster.
func (m *Memory) Stop() error {
	if m.app == nil {
		return nil
	}
	old := m.app
	m.app = nil
	if err := old.Stop(context.Background()); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
