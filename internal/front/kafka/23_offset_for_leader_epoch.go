package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

const keyOffsetForLeaderEpoch = 23

// OffsetForLeaderEpoch, 2-4 (KIP-320): where the largest epoch at or below the
// asked one ends; -1, -1 when the asked one is newer than all.
func (s *Server) offsetForLeaderEpoch(_ context.Context, _ *conn.Request, in *kmsg.OffsetForLeaderEpochRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for _, t := range in.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		topic, err := s.lookupTopic(t.Topic, [16]byte{}, false)
		for _, q := range t.Partitions {
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			p.Partition, p.LeaderEpoch, p.EndOffset = q.Partition, -1, -1
			perr := err
			if perr == nil {
				part, ok := topic.Partition(q.Partition)
				switch {
				case !ok:
					perr = noPartition(t.Topic, q.Partition)
				default:
					if perr = checkLeaderEpoch(q.CurrentLeaderEpoch, part.LeaderEpoch()); perr == nil {
						epoch, end := part.EpochEnd(q.LeaderEpoch)
						p.LeaderEpoch, p.EndOffset = epoch, int64(end)
					}
				}
			}
			p.ErrorCode = codes.For(keyOffsetForLeaderEpoch, perr)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
