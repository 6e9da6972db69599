package bench

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// TxnOptions say what `bench txn` measures: each transaction reads records as a
// member of a group, writes as many to the topic, and commits both.
type TxnOptions struct {
	Load                 // its partitions are the output topic's; Producers work side by side
	Transactions   int64 // over all workers
	PerTransaction int   // records
}

// TxnResult is what a run of `bench txn` showed.
type TxnResult struct {
	Topic          string     `json:"topic"`
	Partitions     int32      `json:"partitions"`
	Workers        int        `json:"workers"`
	Transactions   int64      `json:"transactions"`
	Aborted        int64      `json:"aborted"` // by rebalances, and run again
	PerTransaction int        `json:"records_per_transaction"`
	RecordBytes    int        `json:"record_bytes"`
	Seconds        float64    `json:"seconds"`
	TxnsPerSec     float64    `json:"transactions_per_second"`
	RecordsPerSec  float64    `json:"records_per_second"`
	Latency        *Quantiles `json:"latency"` // from begin to commit
}

// Txn runs read-process-write transactions as fast as they go and prints how
// many there were.
func Txn(ctx context.Context, g *cli.Globals, o TxnOptions) error {
	o.Records = o.Transactions * int64(o.PerTransaction)
	o.Topic, o.Rate, o.Duration = "", 0, 0
	if o.Transactions < 1 || o.PerTransaction < 1 {
		return cli.Usagef("--transactions and --per-transaction must be at least 1")
	}
	if err := o.validate(); err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	input, undoInput, err := o.withPartitions(int32(o.Producers)).topic(ctx, g, conn)
	if err != nil {
		return err
	}
	defer undoInput()
	output, undo, err := o.topic(ctx, g, conn)
	if err != nil {
		return err
	}
	defer undo()
	if err := o.fill(ctx, g, input); err != nil {
		return err
	}
	r := &TxnResult{Topic: output, Partitions: o.Partitions, Workers: o.Producers, PerTransaction: o.PerTransaction, RecordBytes: o.Size}
	if err := o.work(ctx, g, input, output, r); err != nil {
		return err
	}
	limited, cancel := g.Limit(ctx)
	defer cancel()
	if _, err := conn.Admin.DeleteGroup(limited, input); err != nil && !o.Keep {
		g.Note("Group %s could not be deleted: %v", input, err)
	}
	return g.Print(r, r.write)
}

func (l Load) withPartitions(n int32) Load {
	l.Partitions = n
	return l
}

// fill gives every worker's partition of the input its share of records.
func (o TxnOptions) fill(ctx context.Context, g *cli.Globals, input string) error {
	conn, err := g.Connect(ctx, kgo.DefaultProduceTopic(input), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stock := newValues(o.Load)
	var failed atomic.Pointer[error]
	// Enough that a worker never waits for input, whichever partitions the first
	// transactions read while the group settles.
	share := (o.share(0) + 1 + int64(o.Producers)) * int64(o.PerTransaction)
	for n := range share * int64(o.Producers) {
		r := stock.record(n)
		r.Partition = int32(n % int64(o.Producers))
		conn.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := conn.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return cli.Failed("fill "+input, *err)
	}
	return nil
}

// share is how many transactions a worker runs.
func (o TxnOptions) share(worker int) int64 {
	n := int64(o.Producers)
	return (o.Transactions + n - 1 - int64(worker)) / n
}

// work starts the workers, waits until each has its partition, and lets them run.
func (o TxnOptions) work(ctx context.Context, g *cli.Globals, input, output string, r *TxnResult) error {
	var latency Histogram
	var done atomic.Int64
	workers := make([]*txnWorker, o.Producers)
	for i := range workers {
		w, err := o.worker(g, input, output, fmt.Sprintf("%s-%d", output, i))
		if err != nil {
			return err
		}
		defer w.session.Close()
		workers[i] = w
	}
	for _, w := range workers {
		if err := w.ready(ctx, g, o.PerTransaction); err != nil {
			return err
		}
	}
	errs := make([]error, len(workers))
	var group sync.WaitGroup
	begin := time.Now()
	for i, w := range workers {
		group.Go(func() {
			for range o.share(i) {
				if errs[i] = w.transaction(ctx, o.PerTransaction, &latency); errs[i] != nil {
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	took := time.Since(begin).Seconds()
	for i, err := range errs {
		if err != nil {
			return cli.Failed("run a transaction", err)
		}
		r.Aborted += workers[i].aborted
	}
	r.Transactions, r.Seconds, r.Latency = done.Load(), took, latency.Quantiles()
	r.TxnsPerSec = float64(r.Transactions) / took
	r.RecordsPerSec = r.TxnsPerSec * float64(o.PerTransaction)
	return nil
}

// txnWorker is one member of the group with its transactional id.
type txnWorker struct {
	session *kgo.GroupTransactSession
	output  string
	parts   int32
	sent    int64
	aborted int64 // by rebalances
}

func (o TxnOptions) worker(g *cli.Globals, input, output, id string) (*txnWorker, error) {
	base, err := g.ClientOptions()
	if err != nil {
		return nil, err
	}
	producing, err := o.producerOptions(output)
	if err != nil {
		return nil, err
	}
	opts := append(append(base, producing...),
		kgo.TransactionalID(id), kgo.ConsumerGroup(input), kgo.ConsumeTopics(input),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.Balancers(kgo.RangeBalancer()))
	session, err := kgo.NewGroupTransactSession(opts...)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return &txnWorker{session: session, output: output, parts: o.Partitions}, nil
}

// ready runs one transaction, so that the group has settled and the
// transactional id has its producer before time is taken.
func (w *txnWorker) ready(ctx context.Context, g *cli.Globals, records int) error {
	ctx, cancel := context.WithTimeout(ctx, max(g.Timeout, time.Minute))
	defer cancel()
	var none Histogram
	return cli.Failed("run a first transaction", w.transaction(ctx, records, &none))
}

// transaction reads, writes and commits once, however many tries a rebalance
// makes of it.
func (w *txnWorker) transaction(ctx context.Context, records int, latency *Histogram) error {
	begin := time.Now()
	if err := w.session.Begin(); err != nil {
		return err
	}
	var failed atomic.Pointer[error]
	for n := 0; n < records; {
		fetches := w.session.PollRecords(ctx, records-n)
		if err := ctx.Err(); err != nil {
			return err
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return errs[0].Err
		}
		fetches.EachRecord(func(in *kgo.Record) {
			out := &kgo.Record{Topic: w.output, Partition: int32(w.sent % int64(w.parts)), Key: in.Key, Value: in.Value}
			w.sent++
			n++
			w.session.Produce(ctx, out, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			})
		})
	}
	committed, err := w.session.End(ctx, kgo.TryCommit)
	switch {
	case err != nil:
		return err
	case !committed: // the group was rebalanced in the middle; the input is read again
		w.aborted++
		return w.transaction(ctx, records, latency)
	case failed.Load() != nil:
		return *failed.Load()
	}
	latency.Record(time.Since(begin))
	return nil
}

func (r *TxnResult) write(w io.Writer) error {
	fmt.Fprintf(w, "Committed:   %s of %s of %s each, to %s, by %s\n", cli.Plural(r.Transactions, "transaction"),
		cli.Plural(int64(r.PerTransaction), "record"), cli.Bytes(int64(r.RecordBytes)), cli.Plural(int64(r.Partitions), "partition"), cli.Plural(int64(r.Workers), "worker"))
	fmt.Fprintf(w, "Throughput:  %.1f transactions/s, %s records/s in %.2f s\n", r.TxnsPerSec, cli.Count(int64(r.RecordsPerSec)), r.Seconds)
	_, err := fmt.Fprintf(w, "Latency:     %s (from begin to commit)\n", r.Latency)
	return err
}
