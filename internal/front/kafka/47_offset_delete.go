package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// OffsetDelete, 0 (KIP-496): offsets of topics that no member consumes.
func (s *Server) offsetDelete(_ context.Context, _ *conn.Request, in *kmsg.OffsetDeleteRequest, done func(kmsg.Response, error)) {
	var keys []offsets.Key
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			keys = append(keys, offsets.Key{Topic: t.Topic, Partition: p.Partition})
		}
	}
	s.opts.Groups.DeleteOffsets(in.Group, keys, func(res groups.CommitResult) {
		resp := kmsg.NewPtrOffsetDeleteResponse()
		if resp.ErrorCode = codes.ForReason(res.All); res.All != refusal.None {
			done(resp, nil)
			return
		}
		i := 0
		for _, t := range in.Topics {
			out := kmsg.NewOffsetDeleteResponseTopic()
			out.Topic = t.Topic
			for _, p := range t.Partitions {
				po := kmsg.NewOffsetDeleteResponseTopicPartition()
				po.Partition, po.ErrorCode = p.Partition, codes.ForReason(res.Each[i])
				out.Partitions = append(out.Partitions, po)
				i++
			}
			resp.Topics = append(resp.Topics, out)
		}
		done(resp, nil)
	})
}
