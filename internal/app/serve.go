package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/config"
)

// Serve runs a broker until ctx is over or the broker cannot go on, then stops it.
// The start block goes to out.
func Serve(ctx context.Context, o Options, out io.Writer) error {
	tuneMemory()
	b, err := Start(ctx, o)
	if err != nil {
		return err
	}
	return b.run(ctx, out)
}

// run is Serve after the start.
func (b *Broker) run(ctx context.Context, out io.Writer) error {
	if _, err := io.WriteString(out, b.startBlock()); err != nil {
		b.log.Warn("start block not printed", "err", err)
	}
	var cause error
	select {
	case <-ctx.Done():
		b.log.Info("stopping", "deadline", b.o.Config.ShutdownTimeout)
	case cause = <-b.Fatal():
		b.log.Error("stopping: the broker cannot go on", "err", cause)
	}
	begin := time.Now()
	stopErr := b.stopInTime(ctx)
	if cause != nil {
		return fmt.Errorf("the broker stopped itself: %w", cause)
	}
	if stopErr != nil {
		return fmt.Errorf("not a clean stop: %w; acknowledged data is safe, the next start replays the journal", stopErr)
	}
	b.log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// stopInTime is Stop with the configured deadline. What does not end even when cut
// off (a disk that hangs) is left behind a quarter of that later: the process ends.
func (b *Broker) stopInTime(ctx context.Context) error {
	limit := b.o.Config.ShutdownTimeout
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop(stopCtx) }()
	last := time.NewTimer(limit + limit/4)
	defer last.Stop()
	select {
	case err := <-stopped:
		return err
	case <-last.C:
		return fmt.Errorf("the broker did not stop within %v", limit+limit/4)
	}
}

// startBlock is what a person sees once the broker serves.
func (b *Broker) startBlock() string {
	var s strings.Builder
	c := b.o.Config
	row := func(name, value string) { fmt.Fprintf(&s, "  %-9s %s\n", name, value) }
	topics, partitions := b.topics.Count()
	fmt.Fprintf(&s, "Daybook %s is ready in %s\n", b.o.Version, b.ready.Round(time.Millisecond))
	row("kafka", orOff(b.addrs.Kafka))
	row("http", orOff(b.addrs.HTTP)+pages(b.addrs.HTTP))
	row("data", fmt.Sprintf("%s  (%d topics, %d partitions, start %d)", c.DataDir, topics, partitions, b.store.Incarnation()+1))
	row("sync", c.Sync.String()+syncNote(c.Sync.Mode))
	return s.String()
}

func orOff(addr string) string {
	if addr == "" {
		return config.Off
	}
	return addr
}

func pages(addr string) string {
	if addr == "" {
		return ""
	}
	return "  (/metrics, /healthz, /readyz, /debug/pprof)"
}

// syncNote says what a mode gives up.
func syncNote(m config.SyncMode) string {
	switch m {
	case config.SyncInterval:
		return "  (acknowledged before it is on disk: a power failure loses up to that much)"
	case config.SyncNone:
		return "  (acknowledged before it is on disk: a power failure loses what the system had not written)"
	default:
		return "  (nothing is acknowledged before it is on disk)"
	}
}
