package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/daybook-mq/daybook/test/sim/history"
)

// processing is one life of a processor. It does by hand what kgo's
// GroupTransactSession does: that one holds a mutex while it waits for the broker,
// which stops a bubble's time.
type processing struct {
	*world
	name               string // its writes are in this producer's order
	instance           *string
	consumer, producer *kgo.Client
	rng                *rand.Rand
}

// processor makes one output of each input, exactly once: it consumes in the group,
// and commits outputs and offsets in one transaction. After an abort it starts
// again from the group's offsets.
func (w *world) processor(name string, rng *rand.Rand) {
	for life := 0; w.running(); life++ {
		p := &processing{world: w, name: fmt.Sprintf("%s/%d", name, life), rng: rng}
		opts := []kgo.Opt{
			kgo.ConsumeTopics(topicIn), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(time.Second), kgo.RebalanceTimeout(sessionTimeout),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500 * time.Millisecond),
		}
		if rng.IntN(2) == 0 { // a static member: its next life takes its place
			p.instance = &name
			opts = append(opts, kgo.InstanceID(name))
		}
		p.consumer, p.producer = w.client(opts...), w.client(transactional(name, rng)...)
		for n := 0; w.running() && rng.IntN(30) > 0; n++ {
			if !p.step(n) {
				break
			}
		}
		p.producer.Close()
		p.consumer.Close()
	}
}

// step polls once and copies what came; false when this life is over.
func (p *processing) step(n int) bool {
	// From before the poll: if the group moves on, the offsets must not count.
	member, generation := p.consumer.GroupMetadata()
	if generation < 0 { // no member yet: such a commit would count without a check
		p.pause(p.rng, 100*time.Millisecond)
		return true
	}
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Second)
	fetches := p.consumer.PollFetches(ctx)
	cancel()
	if fetches.NumRecords() == 0 {
		return true
	}
	if err := p.producer.BeginTransaction(); err != nil {
		return false
	}
	t := p.AddTxn(fmt.Sprintf("%s#%d", p.name, n))
	var failed atomic.Bool
	positions := map[history.Part]int64{}
	fetches.EachRecord(func(r *kgo.Record) {
		from := history.Part{Topic: r.Topic, Index: r.Partition}
		positions[from] = max(positions[from], r.Offset+1)
		p.write(p.producer, &history.Write{
			Producer: p.name, Txn: t, Part: randomPart(p.rng, topicOut),
			Source: &history.Source{Group: group, Part: from, Offset: r.Offset},
		}, func(err error) {
			if err != nil {
				failed.Store(true)
			}
		})
	})
	if p.rng.IntN(15) == 0 { // hang
		p.pause(p.rng, 2*txnTimeout)
	}
	bound, cancel := bounded()
	defer cancel()
	if err := p.producer.Flush(bound); err != nil || failed.Load() {
		return false // as in transaction
	}
	if p.rng.IntN(10) == 0 {
		p.EndTxn(t, false)
		p.TxnEnded(t, outcomeOf(p.producer.EndTransaction(bound, kgo.TryAbort)))
		return false
	}
	return p.commit(bound, t, member, generation, positions)
}

// commit adds the offsets to the transaction and ends it.
func (p *processing) commit(ctx context.Context, t *history.Txn, member string, generation int32, positions map[history.Part]int64) bool {
	if err := p.commitOffsets(ctx, member, generation, positions); err != nil {
		p.EndTxn(t, false)
		p.TxnEnded(t, outcomeOf(p.producer.EndTransaction(ctx, kgo.TryAbort)))
		return false
	}
	var commits []*history.OffsetCommit
	for part, o := range positions {
		cm := &history.OffsetCommit{Group: group, Part: part, Offset: o, Txn: t}
		commits = append(commits, cm)
		p.InvokeCommit(cm)
	}
	p.EndTxn(t, true)
	err := p.producer.EndTransaction(ctx, kgo.TryCommit)
	p.TxnEnded(t, outcomeOf(err))
	for _, cm := range commits {
		p.CompleteCommit(cm, outcomeOf(err))
	}
	return err == nil
}

func outcomeOf(err error) history.Outcome {
	if err != nil {
		return history.Unknown
	}
	return history.OK
}

func (p *processing) commitOffsets(ctx context.Context, member string, generation int32, positions map[history.Part]int64) error {
	id, epoch, err := p.producer.ProducerID(ctx)
	if err != nil {
		return err
	}
	txid, _ := p.producer.OptValue(kgo.TransactionalID).(string)
	if v, _ := p.producer.OptValue(kgo.MaxVersions).(*kversion.Versions); v != nil {
		// The first version of transactions adds the group before.
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = txid, id, epoch, group
		resp, err := req.RequestWith(ctx, p.producer)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = txid, id, epoch, group
	req.MemberID, req.Generation, req.InstanceID = member, generation, p.instance
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = topicIn, p.inputID
	for part, o := range positions {
		item := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		item.Partition, item.Offset = part.Index, o
		topic.Partitions = append(topic.Partitions, item)
	}
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, p.producer)
	if err != nil {
		return err
	}
	for _, r := range resp.Topics[0].Partitions {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}
