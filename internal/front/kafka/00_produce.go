package kafka

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

const keyProduce = 0

// Produce, 3-13 (0-2 are advertised, because old librdkafka turns compression off
// without them, and refused). v7 brings zstd, v8 record errors, v12 transactions v2
// (KIP-890), v13 topic ids.
//
// Every partition's batch is an append group of its own: one that is refused
// leaves the others alone. The handler checks and submits, and returns; the answer
// leaves when all batches are durable. acks=1 waits for the same as acks=all;
// acks=0 gets no answer, but keeps its place in line until it is durable, so that a
// client cannot run ahead of the disk without bound.

// produceCall is one request on its way.
type produceCall struct {
	s       *Server
	in      *kmsg.ProduceRequest
	version int16
	acks    int16
	resp    *kmsg.ProduceResponse
	done    func(kmsg.Response, error)
	left    atomic.Int64 // batches without an outcome, and one for the handler itself
	failed  atomic.Bool
}

func (s *Server) produce(ctx context.Context, r *conn.Request, in *kmsg.ProduceRequest, done func(kmsg.Response, error)) {
	c := &produceCall{s: s, in: in, version: r.Version, acks: in.Acks, done: done, resp: kmsg.NewPtrProduceResponse()}
	c.resp.Topics = make([]kmsg.ProduceResponseTopic, len(in.Topics))
	c.left.Store(1)
	for i := range in.Topics {
		t, out := &in.Topics[i], &c.resp.Topics[i]
		out.Topic, out.TopicID = t.Topic, t.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(t.Partitions))
		topic, err := s.produceTopic(r, t, in.Acks)
		for j := range t.Partitions {
			p := &out.Partitions[j]
			p.Default()
			p.Partition, p.BaseOffset, p.LogAppendTime, p.LogStartOffset = t.Partitions[j].Partition, -1, -1, -1
			if err != nil {
				c.refuse(p, err)
				continue
			}
			c.append(topic, t.Partitions[j].Records, p)
		}
	}
	c.finish()
}

// produceTopic finds the topic, or says why nothing can be appended to it.
func (s *Server) produceTopic(r *conn.Request, t *kmsg.ProduceRequestTopic, acks int16) (*topics.Topic, error) {
	topic, err := s.lookupTopic(t.Topic, t.TopicID, r.Version >= 13)
	switch {
	case acks < -1 || acks > 1:
		return nil, coded(codes.InvalidRequiredAcks, "acks %d is not one of 0, 1 and -1 (all)", acks)
	case err != nil:
		return nil, err
	case topic.Internal && r.ClientID != adminClient:
		return nil, coded(codes.InvalidTopicException, "topic %q is the broker's own; clients cannot write to it", topic.Name)
	case acks == -1 && topic.Config.MinInsyncReplicas > 1 && !s.opts.AssumeReplicas:
		return nil, coded(codes.NotEnoughReplicas, "topic %q wants %d replicas in sync and this broker is the only one: "+
			"set its min.insync.replicas to 1, or start the broker with --assume-replicas", topic.Name, topic.Config.MinInsyncReplicas)
	}
	return topic, nil
}

// adminClient is the client id that Kafka lets write to internal topics.
const adminClient = "__admin_client"

// append checks one batch and starts to append it.
func (c *produceCall) append(t *topics.Topic, recs []byte, out *kmsg.ProduceResponseTopicPartition) {
	p, ok := t.Partition(out.Partition)
	if !ok {
		c.refuse(out, noPartition(t.Name, out.Partition))
		return
	}
	batch, err := checkBatch(t, recs, c.version, c.s.opts.Now())
	if err != nil {
		c.refuse(out, err)
		return
	}
	c.left.Add(1)
	records := batch.NumRecords()
	item := partition.Append{To: p, Batch: batch, TxnV2: c.version >= 12 && batch.IsTransactional()}
	err = c.submit(t, item, func(res []partition.Result, err error) {
		if err != nil {
			c.refuse(out, err)
		} else {
			c.s.traffic.produced(records, len(batch))
			out.BaseOffset = int64(res[0].Base)
			out.LogAppendTime = res[0].LogAppendTime
			out.LogStartOffset = int64(res[0].LogStart)
		}
		c.finish()
	})
	if err != nil {
		c.refuse(out, err)
		c.finish()
	}
}

// refuse notes why a batch was not appended.
func (c *produceCall) refuse(out *kmsg.ProduceResponseTopicPartition, err error) {
	c.failed.Store(true)
	out.ErrorCode = codes.For(keyProduce, err)
	out.ErrorMessage = codes.Text(err)
	if c.version < 8 {
		return
	}
	if bad, ok := asRecordErrors(err); ok {
		for _, i := range bad.indexes {
			e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			e.RelativeOffset, e.ErrorMessage = i, &bad.each
			out.ErrorRecords = append(out.ErrorRecords, e)
		}
	}
}

// finish counts one outcome; the last one sends the answer.
func (c *produceCall) finish() {
	if c.left.Add(-1) > 0 {
		return
	}
	switch {
	case c.acks != 0:
		c.done(c.resp, nil)
	case c.failed.Load():
		// The only way to tell a client that asked for no answers.
		c.done(nil, fmt.Errorf("produce with acks=0: %w", c.firstError()))
	default:
		c.done(nil, nil)
	}
}

func (c *produceCall) firstError() error {
	for _, t := range c.resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != codes.None {
				return fmt.Errorf("%s-%d: error %d: %s", t.Topic, p.Partition, p.ErrorCode, *p.ErrorMessage)
			}
		}
	}
	return model.Err(model.ClassInternal, "no batch failed")
}
