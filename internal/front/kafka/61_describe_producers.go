package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// DescribeProducers, 0: what partitions know of producers, to find hanging
// transactions (KIP-664).
func (s *Server) describeProducers(_ context.Context, _ *conn.Request, in *kmsg.DescribeProducersRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeProducersResponse()
	for _, topic := range in.Topics {
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = topic.Topic
		for _, i := range topic.Partitions {
			out.Partitions = append(out.Partitions, s.activeProducers(topic.Topic, i))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

func (s *Server) activeProducers(topic string, index int32) kmsg.DescribeProducersResponseTopicPartition {
	out := kmsg.NewDescribeProducersResponseTopicPartition()
	out.Partition = index
	if !s.hasPartition(topic, index) {
		out.ErrorCode = codes.UnknownTopicOrPartition
		return out
	}
	t, _ := s.opts.Topics.ByName(topic)
	p, _ := t.Partition(index)
	for _, a := range p.Producers() {
		o := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		o.ProducerID, o.ProducerEpoch = a.ID, int32(a.Epoch)
		o.LastSequence, o.LastTimestamp = a.LastSequence, a.LastTimestamp
		o.CoordinatorEpoch, o.CurrentTxnStartOffset = a.CoordinatorEpoch, int64(a.CurrentTransactionStart)
		out.ActiveProducers = append(out.ActiveProducers, o)
	}
	return out
}
