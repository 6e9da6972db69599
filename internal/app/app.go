package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka"
	"github.com/daybook-mq/daybook/internal/front/web"
	"github.com/daybook-mq/daybook/internal/obs/expo"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Options are what a broker is built from.
type Options struct {
	Config  *config.Config
	FS      vfs.FS           // nil: the operating system's
	Now     func() time.Time // nil: the system's clock
	Listen  ListenFunc       // nil: TCP
	Log     *slog.Logger
	Version string
	// JournalFileSize is the size of one journal file in bytes; 0: the default.
	JournalFileSize int64
}

// ListenFunc opens a listener on host:port.
type ListenFunc func(ctx context.Context, addr string) (net.Listener, error)

// Broker is a running broker.
type Broker struct {
	// Immutable after Start. The HTTP front runs before the other parts are there;
	// what it calls looks at serving first.
	o       Options
	log     *slog.Logger
	addrs   Addrs
	meta    Meta
	store   *partlog.Store
	topics  *topics.Catalogue
	groups  *groups.Coordinator
	txns    *txn.Coordinator
	shares  *sharegroups.Coordinator
	probe   *probe
	kafka   *kafka.Server
	web     *web.Server
	started time.Time
	ready   time.Duration // from Start to serving

	serving atomic.Bool    // all parts are there
	running sync.WaitGroup // the goroutines that accept connections
	fatal   chan error     // room for one: why the broker must stop

	// stops are called by Stop from last to first.
	stops []stop
	once  sync.Once
	err   error // of Stop, after once
}

// stop ends one part.
type stop struct {
	part string
	f    func(context.Context) error
}

// Addrs are the addresses that the fronts listen on; empty when a front is off.
type Addrs struct {
	Kafka string `json:"kafka,omitempty"`
	HTTP  string `json:"http,omitempty"`
}

// Start builds and starts a broker. When it returns an error nothing is left running.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Listen == nil {
		o.Listen = listenTCP
	}
	b := &Broker{o: o, log: o.Log, started: time.Now(), fatal: make(chan error, 1)}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
	}
	return b, nil
}

func (b *Broker) start(ctx context.Context) error {
	// Listeners first: a taken port is found before anything is opened, and a
	// client that connects during recovery waits instead of failing.
	kafkaListener, err := b.listen(ctx, "kafka", b.o.Config.KafkaAddr)
	if err != nil {
		return err
	}
	httpListener, err := b.listen(ctx, "http", b.o.Config.HTTPAddr)
	if err != nil {
		return errors.Join(err, closeListener(kafkaListener))
	}
	if httpListener != nil {
		b.startWeb(httpListener)
	}
	if kafkaListener != nil {
		b.addrs.Kafka = kafkaListener.Addr().String()
	}
	if err := b.build(ctx); err != nil {
		return errors.Join(err, closeListener(kafkaListener))
	}
	if kafkaListener != nil {
		if err := b.startKafka(kafkaListener); err != nil {
			return err
		}
	}
	b.ready = time.Since(b.started)
	b.serving.Store(true)
	return b.writeAddrs()
}

func (b *Broker) startWeb(l net.Listener) {
	b.addrs.HTTP = l.Addr().String()
	b.web = web.Start(web.Options{
		Listener:    l,
		Metrics:     expo.Handler(metrics, b.collect),
		Ready:       b.Ready,
		Inspect:     b.inspect,
		Do:          b.do,
		DebugRemote: b.o.Config.DebugRemote,
		Log:         b.log,
	})
	b.onStop("http front", b.web.Stop)
}

// onStop has f called by Stop, before what was handed over earlier.
func (b *Broker) onStop(part string, f func(context.Context) error) {
	b.stops = append(b.stops, stop{part, f})
}

// Addrs gives the addresses that were chosen.
func (b *Broker) Addrs() Addrs { return b.addrs }

// fail notes why the broker cannot go on.
func (b *Broker) fail(err error) {
	select {
	case b.fatal <- err:
	default: // one reason is enough
	}
}

// Fatal delivers the reason when the broker cannot go on: the disk failed. The
// owner then calls Stop.
func (b *Broker) Fatal() <-chan error { return b.fatal }

// Stop ends the parts in the reverse order of their start and joins every
// goroutine. It may be called more than once.
func (b *Broker) Stop(ctx context.Context) error {
	b.once.Do(func() {
		b.serving.Store(false)
		var faults []error
		for i := len(b.stops) - 1; i >= 0; i-- {
			if err := b.stops[i].f(ctx); err != nil {
				faults = append(faults, fmt.Errorf("stop %s: %w", b.stops[i].part, err))
			}
		}
		b.err = errors.Join(faults...)
	})
	return b.err
}

// Cut ends the Kafka front at once: connections break, and nothing is acknowledged
// any more. Stop is still to be called.
func (b *Broker) Cut() {
	b.serving.Store(false)
	if b.kafka == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	// Its only error is that requests were cut off, which is what was asked for.
	_ = b.kafka.Close(now)
}

// writeAddrs writes the chosen addresses where --addr-file asks, in one step: a
// reader sees all of it or none.
func (b *Broker) writeAddrs() error {
	name := b.o.Config.AddrFile
	if name == "" {
		return nil
	}
	data, err := json.Marshal(b.addrs)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("--addr-file: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("--addr-file: %w", err)
	}
	return nil
}
