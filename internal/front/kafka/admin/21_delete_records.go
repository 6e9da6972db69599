package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// DeleteRecords, 0-2: moves the start of partitions (-1: to the high watermark).
// Topics that are only compacted refuse it, as in Kafka.
func (h *Handlers) deleteRecords(ctx context.Context, r *conn.Request, in *kmsg.DeleteRecordsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDeleteRecordsResponse()
	for _, t := range in.Topics {
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		each(len(t.Partitions), func(i int) {
			q, p := t.Partitions[i], &out.Partitions[i]
			p.Default()
			p.Partition, p.LowWatermark = q.Partition, -1
			low, err := h.deleteFrom(ctx, t.Topic, q.Partition, model.Offset(q.Offset))
			if err == nil {
				p.LowWatermark = int64(low)
			}
			p.ErrorCode = codes.For(r.Key, err)
		})
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

func (h *Handlers) deleteFrom(ctx context.Context, name string, index int32, before model.Offset) (model.Offset, error) {
	t, err := h.topic(name)
	if err != nil {
		return -1, err
	}
	p, ok := t.Partition(index)
	switch {
	case !ok:
		return -1, h.checkPartition(name, index)
	case t.Internal:
		return -1, codes.Errorf(codes.InvalidTopicException, "topic %q is the broker's own", name)
	case !t.Config.CleanupDelete:
		return -1, codes.Errorf(codes.PolicyViolation, "topic %q is only compacted; its cleanup.policy must contain delete", name)
	}
	return p.DeleteRecords(ctx, before)
}
