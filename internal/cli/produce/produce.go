// Package produce is what `daybook produce` does: it reads records from lines,
// files or JSON, sends them with a plain client, and counts exactly what the
// broker acknowledged. It owns the reading of input and the summary; the forms
// of a record are package record's.
package produce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Options say what to send and how.
type Options struct {
	Topic string
	Input Input

	Partition   int32   // -1: by key, else the sticky partitioner's choice
	Rate        float64 // records a second; 0 is as fast as it goes
	Acks        string  // all, 1 or 0
	Compression string
	Delivery    time.Duration // give up when nothing was acknowledged for so long
	Create      bool          // create the topic when there is none
}

// flushGrace is how long an interrupted command still waits for what it has
// sent.
const flushGrace = 5 * time.Second

// Run sends records until the input ends, a record fails, or ctx is over. It
// prints a summary in every case.
func Run(ctx context.Context, g *cli.Globals, o Options) error {
	opts, err := o.clientOptions()
	if err != nil {
		return err
	}
	source, err := o.Input.open(g.In)
	if err != nil {
		return err
	}
	defer source.close()
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	limit, err := o.check(ctx, g, conn)
	conn.Close()
	if err != nil {
		return err
	}
	link := cli.NewLink(g)
	producer, err := g.Connect(ctx, append(opts, kgo.ProducerBatchMaxBytes(limit), kgo.WithHooks(link))...)
	if err != nil {
		return err
	}
	defer producer.Close()

	r := &run{o: o, client: producer.Client, started: time.Now(), stop: make(chan struct{}), partitions: map[int32]*PartitionCount{}}
	stopProgress := r.progress(g)
	err = r.pump(ctx, source)
	stopProgress()
	return r.finish(g, err)
}

func (o Options) clientOptions() ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.DefaultProduceTopic(o.Topic),
		kgo.MaxBufferedBytes(64 << 20),
		kgo.RecordPartitioner(chooser{keyed: kgo.UniformBytesPartitioner(64<<10, true, true, nil)}),
	}
	switch o.Acks {
	case "all", "-1":
		// A command that gives up is told so; it does not send the record again itself.
		opts = append(opts, kgo.AllowIdempotentProduceCancellation())
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, cli.Usagef("--acks is %q: it must be all, 1 or 0", o.Acks)
	}
	codec, err := Codec(o.Compression)
	if err != nil {
		return nil, err
	}
	if o.Rate < 0 {
		return nil, cli.Usagef("--rate is %g: it must be 0 (no limit) or more", o.Rate)
	}
	if o.Delivery < time.Second {
		return nil, cli.Usagef("--delivery-timeout is %s: it must be at least 1s", o.Delivery)
	}
	return append(opts, kgo.ProducerBatchCompression(codec)), nil
}

// Codec finds a compression by name.
func Codec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, cli.Usagef("--compression is %q: it must be none, gzip, snappy, lz4 or zstd", name)
}

// chooser puts a record into the partition it names, else where Kafka's default
// partitioner would.
type chooser struct{ keyed kgo.Partitioner }

func (c chooser) ForTopic(topic string) kgo.TopicPartitioner {
	return topicChooser{c.keyed.ForTopic(topic)}
}

type topicChooser struct{ kgo.TopicPartitioner }

func (c topicChooser) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || c.TopicPartitioner.RequiresConsistency(r)
}

func (c topicChooser) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return c.TopicPartitioner.Partition(r, n)
}

// OnNewBatch lets the sticky choice move on, as the wrapped partitioner wishes.
func (c topicChooser) OnNewBatch() {
	if t, ok := c.TopicPartitioner.(kgo.TopicPartitionerOnNewBatch); ok {
		t.OnNewBatch()
	}
}

// PartitionByBackup is the wrapped partitioner's choice with the load in view.
func (c topicChooser) PartitionByBackup(r *kgo.Record, n int, backup kgo.TopicBackupIter) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	if t, ok := c.TopicPartitioner.(kgo.TopicBackupPartitioner); ok {
		return t.PartitionByBackup(r, n, backup)
	}
	return c.TopicPartitioner.Partition(r, n)
}

// check looks at the topic before anything is sent, and gives the largest batch
// that it takes.
func (o Options) check(ctx context.Context, g *cli.Globals, conn *cli.Conn) (int32, error) {
	const usual = 1_000_012
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	topics, err := conn.Topics(ctx, o.Topic)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		if !o.Create {
			return 0, cli.Hintf(err, "Make it with `daybook topic create %s`, or add --create.", o.Topic)
		}
		if _, err := conn.Admin.CreateTopic(ctx, -1, -1, nil, o.Topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return 0, cli.Refused("create topic "+o.Topic, err, "")
		}
		return usual, nil
	}
	if err != nil {
		return 0, err
	}
	if n := len(topics[o.Topic].Partitions); int(o.Partition) >= n {
		return 0, cli.Usagef("--partition %d: topic %s has partitions 0 to %d", o.Partition, o.Topic, n-1)
	}
	return max(usual, largestBatch(ctx, conn, o.Topic)), nil
}

// largestBatch is the topic's max.message.bytes; 0 when we may not know.
func largestBatch(ctx context.Context, conn *cli.Conn, topic string) int32 {
	configs, err := conn.Admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return 0
	}
	var n int32
	_, _ = configs.On(topic, func(r *kadm.ResourceConfig) error {
		for _, c := range r.Configs {
			if c.Key == "max.message.bytes" {
				_, _ = fmt.Sscan(c.MaybeValue(), &n)
			}
		}
		return nil
	})
	return min(n, 1<<30)
}

// run is one command's sending. The client's callbacks and the reader share it.
type run struct {
	o       Options
	client  *kgo.Client
	started time.Time
	stop    chan struct{} // closed when no more is to be read

	mu         sync.Mutex
	stopped    bool
	read       int64
	acked      int64
	failed     int64
	bytes      int64 // keys and values of acknowledged records
	firstErr   error
	partitions map[int32]*PartitionCount
}

// errNoAck ends a command to which nothing has been acknowledged for too long.
var errNoAck = errors.New("no acknowledgement")

// pump reads and sends until the end, the first failure or an interruption, and
// waits for what is under way.
func (r *run) pump(ctx context.Context, source *source) error {
	// What has been read is given its chance after an interruption.
	sendCtx, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	go r.watch(ctx, sendCtx, abort)
	fed := make(chan error, 1)
	go func() { fed <- r.feed(sendCtx, source) }()
	var err error
	select {
	case err = <-fed:
	case <-ctx.Done():
		r.halt() // the reader may hang in a read of a terminal; it ends with the process
	}
	flushErr := r.client.Flush(sendCtx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case flushErr != nil && r.failure() != nil:
		return nil // the record's own error tells more
	}
	return flushErr
}

// watch ends the sending when nothing is acknowledged for as long as the options
// allow, or flushGrace after an interruption.
func (r *run) watch(ctx, sendCtx context.Context, abort context.CancelCauseFunc) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var interrupted time.Time
	last, since := int64(-1), time.Now()
	for {
		select {
		case <-sendCtx.Done():
			return
		case now := <-tick.C:
			if ctx.Err() != nil && interrupted.IsZero() {
				interrupted = now
			}
			r.mu.Lock()
			settled, waiting := r.acked+r.failed, r.read > r.acked+r.failed
			r.mu.Unlock()
			if settled != last || !waiting {
				last, since = settled, now
			}
			switch {
			case now.Sub(since) > r.o.Delivery:
				r.fail(errNoAck)
				abort(errNoAck)
			case !interrupted.IsZero() && now.Sub(interrupted) > flushGrace:
				abort(context.Canceled)
			}
		}
	}
}

// fail notes the first failure and stops the reading.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstErr == nil {
		r.firstErr = err
		r.haltLocked()
	}
}

func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.firstErr
}

// feed reads records and hands them to the client.
func (r *run) feed(ctx context.Context, source *source) error {
	pace := newPacer(r.o.Rate)
	for {
		rec, err := source.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if r.o.Partition >= 0 {
			rec.Partition = r.o.Partition
		}
		if !pace.wait(r.stop) {
			return nil
		}
		r.mu.Lock()
		if r.stopped {
			r.mu.Unlock()
			return nil
		}
		r.read++
		r.mu.Unlock()
		r.client.Produce(ctx, rec, r.settled)
	}
}

// settled is called once for every record, by the client.
func (r *run) settled(rec *kgo.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
		if r.firstErr == nil {
			r.firstErr = err
			r.haltLocked()
		}
		return
	}
	r.acked++
	r.bytes += int64(len(rec.Key) + len(rec.Value))
	p := r.partitions[rec.Partition]
	if p == nil {
		p = &PartitionCount{Partition: rec.Partition, First: rec.Offset}
		r.partitions[rec.Partition] = p
	}
	p.Records++
	p.First, p.Last = min(p.First, rec.Offset), max(p.Last, rec.Offset)
}

func (r *run) halt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.haltLocked()
}

func (r *run) haltLocked() {
	if !r.stopped {
		r.stopped = true
		close(r.stop)
	}
}

// explain turns the first refusal into a text with a remedy.
func (r *run) explain(err error) error {
	what := "send to " + r.o.Topic
	switch {
	case errors.Is(err, errNoAck):
		return cli.Hintf(fmt.Errorf("%s: no acknowledgement within %s", what, r.o.Delivery),
			"Look whether the broker runs (`daybook doctor`), or wait longer with --delivery-timeout.")
	case errors.Is(err, kerr.MessageTooLarge):
		return cli.Hintf(fmt.Errorf("%s: a record is larger than the topic takes (MESSAGE_TOO_LARGE)", what),
			"Raise the limit: `daybook topic alter %s --set max.message.bytes=N`.", r.o.Topic)
	case strings.Contains(err.Error(), "invalid record partitioning choice"):
		return cli.Hintf(fmt.Errorf("%s: a record names a partition that the topic does not have", what),
			"`daybook topic describe %s` shows its partitions; --partition N sends all to one.", r.o.Topic)
	}
	return cli.Failed(what, err)
}
