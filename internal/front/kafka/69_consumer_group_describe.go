package kafka

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// Member types of ConsumerGroupDescribe v1 (KIP-1099).
const (
	memberClassic  = 0
	memberConsumer = 1
)

// ConsumerGroupDescribe, 0-1 (KIP-848).
func (s *Server) consumerGroupDescribe(_ context.Context, _ *conn.Request, in *kmsg.ConsumerGroupDescribeRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	for _, id := range in.Groups {
		out := kmsg.NewConsumerGroupDescribeResponseGroup()
		out.Group, out.AuthorizedOperations = id, math.MinInt32
		if in.IncludeAuthorizedOperations {
			out.AuthorizedOperations = groupOperations
		}
		d, topics, why := s.opts.Groups.DescribeConsumer(id)
		if why != refusal.None {
			out.ErrorCode, out.ErrorMessage = codes.ForReason(why), codes.GroupText(id, why)
			resp.Groups = append(resp.Groups, out)
			continue
		}
		out.State, out.Epoch, out.AssignmentEpoch, out.AssignorName = string(d.State), d.Epoch, d.AssignmentEpoch, d.Assignor
		for _, m := range d.Members {
			mo := kmsg.NewConsumerGroupDescribeResponseGroupMember()
			mo.MemberID, mo.InstanceID, mo.RackID = m.ID, orNull(m.Instance), orNull(m.Rack)
			mo.MemberEpoch, mo.ClientID, mo.ClientHost = m.Epoch, m.ClientID, m.ClientHost
			mo.SubscribedTopics, mo.SubscribedTopicRegex = m.Topics, orNull(m.Pattern)
			mo.Assignment, mo.TargetAssignment = assignment(m.Assigned, topics), assignment(m.Target, topics)
			mo.MemberType = memberConsumer
			if m.Classic != nil {
				mo.MemberType = memberClassic
			}
			out.Members = append(out.Members, mo)
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp, nil
}

func assignment(ps consumer.Partitions, topics *consumer.Topics) kmsg.Assignment {
	a := kmsg.NewAssignment()
	for _, id := range ps.Topics() {
		t := kmsg.NewAssignmentTopicPartition()
		t.TopicID, t.Topic, t.Partitions = id, topics.Name(id), ps[id]
		a.TopicPartitions = append(a.TopicPartitions, t)
	}
	return a
}
