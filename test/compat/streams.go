//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

const (
	streamsKills      = 20 // the application and the broker in turn
	streamsPartitions = 2
	streamsIn         = "streams.lines"
	streamsOut        = "streams.counts"
	lineEvery         = 10 * time.Millisecond
	progressLimit     = 90 * time.Second // for a killed side to work again
)

// wordCount is one run of the Java program WordCount under fire.
type wordCount struct {
	env    *harness.Env
	broker *harness.Broker
	report *harness.Report

	app      *harness.Process
	replaced atomic.Int64 // stream threads that ended by an error and were started anew
	closed   atomic.Bool  // the program said that it ended in order
	counted  atomic.Int64 // committed counts seen
}

// runStreams feeds lines of known words, kills both sides in turn while lines go on, and holds
// what the topic of counts shows against what was sent.
func runStreams(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Minute)
	defer cancel()
	if err := createTopics(ctx, b, streamsPartitions, streamsIn, streamsOut); err != nil {
		return err
	}
	w := &wordCount{env: env, broker: b, report: r}
	if err := w.start(); err != nil {
		return err
	}
	defer func() {
		w.app.Signal(syscall.SIGKILL)
		<-w.app.Done()
	}()
	watched, stopWatch := context.WithCancel(ctx)
	watchEnd := make(chan error, 1)
	go func() { watchEnd <- w.watch(watched) }()
	feeding, stopFeed := context.WithCancel(ctx)
	fed := make(chan words, 1)
	go func() { fed <- feed(ctx, feeding.Done(), b.Addr) }()
	err := w.killAll(ctx)
	stopFeed()
	sent := <-fed
	if err = errors.Join(err, sent.err); err == nil {
		err = w.await(ctx, sent.total)
	}
	stopWatch()
	if err := errors.Join(err, <-watchEnd); err != nil {
		return err
	}
	_ = w.app.Stop(30 * time.Second) // a JVM answers SIGTERM with status 143
	if !w.closed.Load() {
		return fmt.Errorf("the application did not close in order, see %s", w.log())
	}
	r.Pass()
	return w.judge(ctx, sent)
}

func createTopics(ctx context.Context, b *harness.Broker, partitions int32, topics ...string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	answers, err := kadm.NewClient(cl).CreateTopics(ctx, partitions, 1, nil, topics...)
	return errors.Join(err, answers.Error())
}

func (w *wordCount) log() string { return filepath.Join(w.env.Run, "logs", "streams", "app.log") }

func (w *wordCount) start() error {
	cmd := java(w.env, "WordCount", w.broker.Addr, "streams-words", streamsIn, streamsOut, filepath.Join(w.env.Run, "streams"))
	cmd.Log = w.log()
	cmd.OnLine = func(line string) {
		switch line {
		case "replaced a thread":
			w.replaced.Add(1)
		case "closed":
			w.closed.Store(true)
		}
	}
	app, err := harness.Start(cmd)
	if err == nil {
		w.app = app
	}
	return err
}

// killAll kills one side after the other, each time once counts are committed again and at
// no particular moment.
func (w *wordCount) killAll(ctx context.Context) error {
	for i := range streamsKills {
		if err := w.await(ctx, w.counted.Load()+500); err != nil {
			return fmt.Errorf("after %d kills: %w", i, err)
		}
		select {
		case <-time.After(rand.N(400 * time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
		var err error
		if i%2 == 0 {
			w.app.Signal(syscall.SIGKILL)
			<-w.app.Done()
			err = w.start()
		} else {
			err = w.broker.Restart(ctx)
		}
		if err != nil {
			return fmt.Errorf("kill %d: %w", i+1, err)
		}
		w.report.Pass()
	}
	return nil
}

// await until total counts are committed.
func (w *wordCount) await(ctx context.Context, total int64) error {
	limit := time.After(progressLimit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for w.counted.Load() < total {
		select {
		case <-w.app.Done():
			return fmt.Errorf("the application ended by itself, see %s", w.log())
		case <-limit:
			return fmt.Errorf("%d counts are committed, awaited were %d, see %s", w.counted.Load(), total, w.log())
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// watch the committed counts as any reader would, over all restarts.
func (w *wordCount) watch(ctx context.Context) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Addr), kgo.ConsumeTopics(streamsOut),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer cl.Close()
	seen := tally{}
	for ctx.Err() == nil {
		var wrong error
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			wrong = errors.Join(wrong, seen.add(r))
			w.counted.Add(1)
		})
		if wrong != nil {
			return fmt.Errorf("a reader that stayed: %w", wrong)
		}
	}
	return nil
}

// judge reads the topic from its beginning to its end: the last count of each word is what
// was sent, and each count came once, in order.
func (w *wordCount) judge(ctx context.Context, sent words) error {
	seen := tally{}
	var wrong []error
	committed, err := readAll(ctx, w.broker.Addr, kgo.ReadCommitted(), func(r *kgo.Record) {
		if err := seen.add(r); err != nil && len(wrong) < 5 {
			wrong = append(wrong, err)
		}
	})
	if err != nil {
		return err
	}
	w.report.Check("each count once, in order", errors.Join(wrong...))
	for word, want := range sent.counts {
		if seen[word] != want {
			wrong = append(wrong, fmt.Errorf("%q was sent %d times and counted %d times", word, want, seen[word]))
		}
	}
	if len(seen) != len(sent.counts) || committed != sent.total {
		wrong = append(wrong, fmt.Errorf("%d words and %d counts, sent were %d and %d", len(seen), committed, len(sent.counts), sent.total))
	}
	w.report.Check("the counts are right", errors.Join(wrong...))
	all, err := readAll(ctx, w.broker.Addr, kgo.ReadUncommitted(), func(*kgo.Record) {})
	w.report.Note("%d words in %d lines counted over %d kills; %d counts were aborted, %d threads replaced",
		sent.total, sent.lines, streamsKills, all-committed, w.replaced.Load())
	return err
}

// readAll gives each record of the counts up to the ends that the topic has now.
func readAll(ctx context.Context, addr string, level kgo.IsolationLevel, each func(*kgo.Record)) (int64, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(streamsOut), kgo.FetchIsolationLevel(level),
		kgo.KeepControlRecords()) // the last record of a partition is a marker
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, streamsOut)
	if err != nil {
		return 0, err
	}
	left := map[int32]bool{}
	ends.Each(func(o kadm.ListedOffset) { left[o.Partition] = o.Offset > 0 })
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var records int64
	for anyLeft(left) {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return records, fmt.Errorf("the counts cannot be read to their end: %w", ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, _ := ends.Lookup(r.Topic, r.Partition); r.Offset >= end.Offset-1 {
				left[r.Partition] = false
			}
			if !r.Attrs.IsControl() {
				records++
				each(r)
			}
		})
	}
	return records, nil
}

func anyLeft(left map[int32]bool) bool {
	for _, l := range left {
		if l {
			return true
		}
	}
	return false
}

// tally is the last count of each word.
type tally map[string]int64

// add says whether r is the next count of its word.
func (t tally) add(r *kgo.Record) error {
	word := string(r.Key)
	n, err := strconv.ParseInt(string(r.Value), 10, 64)
	if err != nil {
		return fmt.Errorf("%q: %w", word, err)
	}
	last := t[word]
	t[word] = n
	if n != last+1 {
		return fmt.Errorf("offset %d of partition %d: %q has count %d after %d", r.Offset, r.Partition, word, n, last)
	}
	return nil
}

// words is what was sent.
type words struct {
	counts map[string]int64
	lines  int
	total  int64
	err    error
}

// feed lines of one to nine words, some much more common than others, until stop is closed.
// Each line is acknowledged once; the producer sends again what a killed broker took no note of.
func feed(ctx context.Context, stop <-chan struct{}, addr string) words {
	sent := words{counts: map[string]int64{}}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(streamsIn))
	if err != nil {
		sent.err = err
		return sent
	}
	defer cl.Close()
	var refused atomic.Pointer[error]
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.2, 2, 99)
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	for refused.Load() == nil {
		select {
		case <-tick.C:
		case <-stop:
			sent.err = cl.Flush(ctx)
			if err := refused.Load(); err != nil {
				sent.err = *err
			}
			return sent
		}
		line := make([]string, 1+random.IntN(9))
		for i := range line {
			line[i] = fmt.Sprintf("word-%02d", zipf.Uint64())
			sent.counts[line[i]]++
		}
		sent.lines++
		sent.total += int64(len(line))
		cl.Produce(ctx, kgo.StringRecord(strings.Join(line, " ")), func(_ *kgo.Record, err error) {
			if err != nil {
				refused.Store(&err)
			}
		})
	}
	sent.err = *refused.Load()
	return sent
}
