package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/test/sim/history"
)

// Options shape a round. Zero values mean the defaults.
type Options struct {
	Seed     uint64
	Duration time.Duration // of the clients' work; 30 s
	Log      *slog.Logger
}

// The topics: inputs by plain producers, outputs by processors, and what
// transactional producers write.
const (
	topicIn, topicOut, topicTxn = "in", "out", "txn"
	partitions                  = 2
	group                       = "processors"
)

// How long things take. Transactions are short, so that a client that hangs is
// fenced within a round.
const (
	txnTimeout     = 4 * time.Second
	sessionTimeout = 6 * time.Second
	deliveryLimit  = 10 * time.Second
	settleTime     = 15 * time.Second
)

// world is a round under way.
type world struct {
	*history.History
	cluster Cluster
	seed    uint64
	log     *slog.Logger
	ctx     context.Context // ends when the clients are to stop
	values  atomic.Int64
	inputID [16]byte // of the topic of inputs
}

// Run starts the cluster, lets random clients work on it while it is hurt, stops
// them, and gives the history. The cluster runs when it returns without an error.
func Run(c Cluster, o Options) (*history.History, error) {
	if o.Duration == 0 {
		o.Duration = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Duration)
	defer cancel()
	w := &world{History: &history.History{}, cluster: c, seed: o.Seed, log: o.Log, ctx: ctx}
	if err := w.createTopics(); err != nil {
		return nil, err
	}
	var actors sync.WaitGroup
	for i, act := range []func(name string, rng *rand.Rand){
		w.plainProducer, w.plainProducer, w.txnProducer, w.txnProducer, w.txnProducer,
		w.processor, w.processor, w.reader, w.reader, w.groupWatcher,
	} {
		rng := rand.New(rand.NewPCG(o.Seed, uint64(i)))
		actors.Go(func() { act(fmt.Sprintf("c%d", i), rng) })
	}
	err := w.hurt(rand.New(rand.NewPCG(o.Seed, 1<<32)))
	cancel()
	actors.Wait()
	if err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, fmt.Errorf("final look: %w", err)
	}
	return w.History, nil
}

// client makes a client; it panics only on options that contradict each other.
func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(w.cluster.Client(), opts...)...)
	if err != nil {
		panic(err)
	}
	return cl
}

func (w *world) createTopics() error {
	cl := w.client()
	defer cl.Close()
	resps, err := kadm.NewClient(cl).CreateTopics(w.ctx, partitions, 1, nil, topicIn, topicOut, topicTxn)
	if err != nil {
		return err
	}
	w.inputID = resps[topicIn].ID
	return resps.Error()
}

// running reports that clients should go on.
func (w *world) running() bool { return w.ctx.Err() == nil }

// pause lets a random time pass, at most d.
func (w *world) pause(rng *rand.Rand, d time.Duration) {
	select {
	case <-time.After(time.Duration(rng.Int64N(int64(d)))):
	case <-w.ctx.Done():
	}
}

// write has a client append a new value, and notes what becomes of it.
func (w *world) write(cl interface {
	Produce(context.Context, *kgo.Record, func(*kgo.Record, error))
}, wr *history.Write, done func(error),
) {
	wr.Value = w.values.Add(1)
	w.Invoke(wr)
	r := &kgo.Record{Topic: wr.Part.Topic, Partition: wr.Part.Index, Value: strconv.AppendInt(nil, wr.Value, 10)}
	cl.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		if err != nil {
			w.Complete(wr, history.Unknown, 0)
		} else {
			w.Complete(wr, history.OK, r.Offset)
		}
		if done != nil {
			done(err)
		}
	})
}

// record reads a record as the history has it.
func record(r *kgo.Record) (history.Record, error) {
	v, err := strconv.ParseInt(string(r.Value), 10, 64)
	return history.Record{Offset: r.Offset, Value: v}, err
}

func randomPart(rng *rand.Rand, topic string) history.Part {
	return history.Part{Topic: topic, Index: rng.Int32N(partitions)}
}
