package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/daybook-mq/daybook/test/sim/history"
)

// producing are the options of every client that produces.
func producing() []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(deliveryLimit),
		kgo.ProducerLinger(0), kgo.RetryTimeout(deliveryLimit),
	}
}

// bounded is a context for what must end although the round is over.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), deliveryLimit)
}

// transactional are the options of a transactional producer, of the second version
// of transactions more often than of the first.
func transactional(id string, rng *rand.Rand) []kgo.Opt {
	opts := append(producing(), kgo.TransactionalID(id), kgo.TransactionTimeout(txnTimeout))
	if rng.IntN(3) == 0 {
		opts = append(opts, kgo.MaxVersions(kversion.V3_7_0()))
	}
	return opts
}

// plainProducer writes inputs without transactions, in several lives.
func (w *world) plainProducer(name string, rng *rand.Rand) {
	for life := 0; w.running(); life++ {
		cl := w.client(producing()...)
		producer := fmt.Sprintf("%s/%d", name, life)
		for n := rng.IntN(100); n > 0 && w.running(); n-- {
			w.write(cl, &history.Write{Producer: producer, Part: randomPart(rng, topicIn)}, nil)
			w.pause(rng, 100*time.Millisecond)
		}
		ctx, cancel := bounded()
		_ = cl.Flush(ctx) // what is not flushed has failed, for all that it knows
		cancel()
		cl.Close()
	}
}

// txnProducer runs transactions under one transactional id, in several lives: it
// commits, aborts, hangs until it is fenced, and leaves them open.
func (w *world) txnProducer(name string, rng *rand.Rand) {
	for life := 0; w.running(); life++ {
		cl := w.client(transactional(name, rng)...)
		producer := fmt.Sprintf("%s/%d", name, life)
		for n := 0; w.running() && rng.IntN(12) > 0; n++ {
			if !w.transaction(cl, producer, n, rng) {
				break
			}
			w.pause(rng, 200*time.Millisecond)
		}
		cl.Close()
	}
}

// transaction runs one transaction; it returns false when the client cannot go on.
func (w *world) transaction(cl *kgo.Client, producer string, n int, rng *rand.Rand) bool {
	if err := cl.BeginTransaction(); err != nil {
		return false
	}
	t := w.AddTxn(fmt.Sprintf("%s#%d", producer, n))
	var failed atomic.Bool
	writes, hangAt := 1+rng.IntN(6), rng.IntN(60)
	for i := range writes {
		if i == hangAt { // it is fenced, and does not know it
			w.pause(rng, 2*txnTimeout)
		}
		w.write(cl, &history.Write{Producer: producer, Txn: t, Part: randomPart(rng, topicTxn)}, func(err error) {
			if err != nil {
				failed.Store(true)
			}
		})
		w.pause(rng, 50*time.Millisecond)
	}
	ctx, cancel := bounded()
	defer cancel()
	// Who has failed starts anew: kgo may be asking for a producer id, under a mutex
	// that would stop a bubble's time.
	if err := cl.Flush(ctx); err != nil || failed.Load() {
		return false
	}
	if rng.IntN(15) == 0 {
		return false // leave it open
	}
	if hangAt == writes {
		w.pause(rng, 2*txnTimeout)
	}
	commit := rng.IntN(3) > 0
	w.EndTxn(t, commit)
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		w.TxnEnded(t, history.Unknown)
		return false
	}
	w.TxnEnded(t, history.OK)
	return true
}

// reader follows every partition from the start, with one isolation or the other.
func (w *world) reader(name string, rng *rand.Rand) {
	for life := 0; w.running(); life++ {
		committed := rng.IntN(4) > 0
		level := kgo.ReadUncommitted()
		if committed {
			level = kgo.ReadCommitted()
		}
		from := map[string]map[int32]kgo.Offset{}
		next := map[history.Part]int64{}
		for _, topic := range []string{topicIn, topicOut, topicTxn} {
			from[topic] = map[int32]kgo.Offset{}
			for i := range int32(partitions) {
				from[topic][i] = kgo.NewOffset().At(0)
			}
		}
		cl := w.client(kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(level), kgo.FetchMaxWait(500*time.Millisecond),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()))
		for w.running() && rng.IntN(100) > 0 {
			w.poll(cl, fmt.Sprintf("%s/%d", name, life), committed, next)
		}
		cl.Close()
	}
}

func (w *world) poll(cl *kgo.Client, name string, committed bool, next map[history.Part]int64) {
	invoked := w.Now()
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	cl.PollFetches(ctx).EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		part := history.Part{Topic: p.Topic, Index: p.Partition}
		rd := history.Read{Consumer: name, Part: part, Committed: committed, Invoked: invoked, From: next[part]}
		for _, r := range p.Records {
			rec, err := record(r)
			if err != nil {
				rec.Value = -1 // nobody wrote that
			}
			rd.Records = append(rd.Records, rec)
			rd.Next = r.Offset + 1
		}
		next[part] = rd.Next
		w.AddRead(rd)
	})
}

// groupWatcher asks again and again how far the group is.
func (w *world) groupWatcher(_ string, rng *rand.Rand) {
	cl := w.client()
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for w.running() {
		invoked := w.Now()
		ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
		got, err := adm.FetchOffsets(ctx, group)
		cancel()
		if err == nil {
			got.Each(func(o kadm.OffsetResponse) {
				if o.Err == nil {
					w.AddOffsetRead(history.OffsetRead{Group: group, Part: history.Part{Topic: o.Topic, Index: o.Partition}, Offset: o.At, Invoked: invoked})
				}
			})
		}
		w.pause(rng, time.Second)
	}
}
