package cli

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nextRecordBytes is how much one fetch of NextRecord asks for; a broker sends
// a first batch that is larger than this whole.
const nextRecordBytes = 64 << 10

// NextRecord finds the first record at or after an offset that a reader may
// see, passing over markers, aborted records and compacted gaps. Without one,
// the record is nil and next is how far there is none. It is one fetch outside
// any consumer, for what a consumer does not tell: where it stands when it has
// skipped something.
func (c *Conn) NextRecord(ctx context.Context, topic kadm.TopicDetail, partition int32, from int64, isolation kgo.IsolationLevel) (rec *kgo.Record, next int64, err error) {
	leader := c.Broker(int(topic.Partitions[partition].Leader))
	for {
		answer, err := fetchOnce(ctx, leader, topic, partition, from, isolation)
		if err != nil {
			return nil, 0, err
		}
		got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			Offset: from, Topic: topic.Topic, Partition: partition, IsolationLevel: isolation,
		}, answer, kgo.DefaultDecompressor(), nil)
		switch {
		case got.Err != nil:
			return nil, 0, got.Err
		case len(got.Records) > 0:
			return got.Records[0], got.Records[0].Offset, nil
		case next <= from:
			return nil, from, nil
		}
		from = next
	}
}

func fetchOnce(ctx context.Context, leader *kgo.Broker, topic kadm.TopicDetail, partition int32, from int64, isolation kgo.IsolationLevel) (*kmsg.FetchResponseTopicPartition, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = nextRecordBytes, -1
	if isolation == kgo.ReadCommitted() {
		req.IsolationLevel = 1
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic.Topic, topic.ID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, from, nextRecordBytes
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	answer, err := leader.RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("the answer to a fetch of one partition does not hold one")
	}
	return &resp.Topics[0].Partitions[0], nil
}
