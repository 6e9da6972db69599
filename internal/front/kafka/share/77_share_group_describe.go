package share

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

const keyDescribe = 77

// ShareGroupDescribe, 1.
func (h *Handlers) describe(_ context.Context, _ *conn.Request, in *kmsg.ShareGroupDescribeRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrShareGroupDescribeResponse()
	for _, id := range in.GroupIDs {
		out := kmsg.NewShareGroupDescribeResponseGroup()
		out.GroupID, out.AuthorizedOperations = id, math.MinInt32
		d, err := h.Groups.Describe(id)
		if err != nil {
			out.ErrorCode, out.ErrorMessage = code(keyDescribe, err)
			out.GroupState = "Dead"
			resp.Groups = append(resp.Groups, out)
			continue
		}
		out.GroupState, out.GroupEpoch, out.AssignmentEpoch, out.Assignor = d.State, d.Epoch, d.AssignmentEpoch, "simple"
		for _, m := range d.Members {
			out.Members = append(out.Members, h.describeMember(m))
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp, nil
}

func (h *Handlers) describeMember(m sharegroups.MemberDescription) kmsg.ShareGroupDescribeResponseGroupMember {
	out := kmsg.NewShareGroupDescribeResponseGroupMember()
	out.MemberID, out.MemberEpoch, out.ClientID, out.ClientHost, out.SubscribedTopicNames = m.ID, m.Epoch, m.Client, m.Host, m.Topics
	if m.Rack != "" {
		out.RackID = &m.Rack
	}
	for _, id := range sortedTopics(m.Assignment) {
		t, ok := h.Topics.ByID(id)
		if !ok {
			continue
		}
		tp := kmsg.NewShareGroupDescribeResponseGroupMemberAssignmentTopicPartition()
		tp.TopicID, tp.Topic, tp.Partitions = id, t.Name, m.Assignment[id]
		out.Assignment.TopicPartitions = append(out.Assignment.TopicPartitions, tp)
	}
	return out
}
