package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// OffsetCommit, 2-10. v2 to v4 have a retention time; v6 leader epochs, v7 static
// members, v9 member epochs (KIP-848), v10 topic ids instead of names.
func (s *Server) offsetCommit(_ context.Context, r *conn.Request, in *kmsg.OffsetCommitRequest, done func(kmsg.Response, error)) {
	cm := groups.Commit{
		Group: in.Group, MemberID: in.MemberID, InstanceID: orEmpty(in.InstanceID),
		Generation: in.Generation, Retention: -1,
	}
	if r.Version <= 4 && in.RetentionTimeMillis >= 0 {
		cm.Retention = time.Duration(in.RetentionTimeMillis) * time.Millisecond
	}
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			it := groups.CommitItem{
				Topic: t.Topic, TopicID: t.TopicID, Partition: p.Partition,
				Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: orEmpty(p.Metadata),
			}
			if r.Version < 6 {
				it.LeaderEpoch = -1
			}
			cm.Items = append(cm.Items, it)
		}
	}
	s.opts.Groups.Commit(cm, func(res groups.CommitResult) {
		resp := kmsg.NewPtrOffsetCommitResponse()
		i := 0
		for _, t := range in.Topics {
			out := kmsg.NewOffsetCommitResponseTopic()
			out.Topic, out.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				pout := kmsg.NewOffsetCommitResponseTopicPartition()
				pout.Partition, pout.ErrorCode = p.Partition, itemCode(res, i, r.Version)
				out.Partitions = append(out.Partitions, pout)
				i++
			}
			resp.Topics = append(resp.Topics, out)
		}
		done(resp, nil)
	})
}

func itemCode(res groups.CommitResult, i int, version int16) codes.Code {
	if res.All != refusal.None {
		return commitCode(res.All, version)
	}
	return codes.ForReason(res.Each[i])
}
