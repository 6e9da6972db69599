// Command franz is the franz-go client program of the compatibility suites. The contract is
// in ../README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch {
	case len(args) == 4 && args[0] == "produce":
		return produce(ctx, args[1], args[2], args[3])
	case len(args) >= 5 && args[0] == "consume":
		return consume(ctx, args[1], args[2], args[3], args[4:])
	case len(args) == 2 && args[0] == "smoke":
		return smoke(ctx, args[1])
	}
	return errors.New("usage: franz produce BROKERS TOPIC FILE | consume BROKERS GROUP OUT TOPIC... | smoke BROKERS")
}

func seeds(brokers string) kgo.Opt { return kgo.SeedBrokers(strings.Split(brokers, ",")...) }

func produce(ctx context.Context, brokers, topic, path string) error {
	cl, err := kgo.NewClient(seeds(brokers),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return err
	}
	defer cl.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var first kgo.FirstErrPromise
	for line := range bytes.Lines(data) {
		key, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		cl.Produce(ctx, &kgo.Record{Topic: topic, Key: key, Value: value}, first.Promise())
	}
	return errors.Join(cl.Flush(ctx), first.Err())
}

// member writes what it polls and commits what it wrote.
type member struct {
	cl      *kgo.Client
	file    *os.File
	out     *bufio.Writer
	written int
}

func consume(ctx context.Context, brokers, group, outPath string, topics []string) error {
	file, err := os.OpenFile(outPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	m := &member{file: file, out: bufio.NewWriterSize(file, 1<<20)}
	// No rebalance happens between a poll and the commit of what it brought.
	m.cl, err = kgo.NewClient(seeds(brokers),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second),
		kgo.Balancers(kgo.CooperativeStickyBalancer()))
	if err != nil {
		return err
	}
	defer m.cl.CloseAllowingRebalance()
	for ctx.Err() == nil {
		if err := m.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) step(ctx context.Context) error {
	defer m.cl.AllowRebalance()
	fetches := m.cl.PollRecords(ctx, 5000)
	if ctx.Err() != nil {
		return nil
	}
	if err := fetches.Err(); err != nil {
		return err
	}
	records := fetches.Records()
	for _, r := range records {
		fmt.Fprintf(m.out, "%s\t%d\t%d\t%s\t%s\n", r.Topic, r.Partition, r.Offset, r.Key, r.Value)
	}
	m.written += len(records)
	if err := m.out.Flush(); err != nil {
		return err
	}
	// A member that must stop still commits what it wrote.
	if err := m.cl.CommitRecords(context.WithoutCancel(ctx), records...); err != nil {
		return err
	}
	fmt.Printf("committed %d\n", m.written)
	return nil
}
