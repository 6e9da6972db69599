package kafka

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// ConsumerGroupHeartbeat, 0-1 (KIP-848). In v1 members bring their own ids, and
// may subscribe by a pattern.
func (s *Server) consumerGroupHeartbeat(_ context.Context, r *conn.Request, in *kmsg.ConsumerGroupHeartbeatRequest, done func(kmsg.Response, error)) {
	if s.opts.Shares != nil && s.opts.Shares.Exists(in.Group) {
		resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
		text := "the group is a share group; use another group id"
		resp.ErrorCode, resp.ErrorMessage = codes.GroupIDNotFound, &text
		done(resp, nil)
		return
	}
	h := consumer.Heartbeat{
		MemberID: in.MemberID, Epoch: in.MemberEpoch, Instance: orEmpty(in.InstanceID), Rack: orEmpty(in.RackID),
		ClientID: r.ClientID, ClientHost: clientHost(r.Conn),
		Rebalance: time.Duration(in.RebalanceTimeoutMillis) * time.Millisecond,
		Topics:    in.SubscribedTopicNames, Assignor: orEmpty(in.ServerAssignor),
	}
	if r.Version >= 1 {
		h.Pattern = in.SubscribedTopicRegex
	} else if h.MemberID == "" && h.Epoch == 0 {
		h.MemberID = rand.Text()
	}
	if in.Topics != nil {
		owned := map[model.TopicID][]int32{}
		for _, t := range in.Topics {
			owned[t.TopicID] = append(owned[t.TopicID], t.Partitions...)
		}
		h.Owned = consumer.Clean(owned)
	}
	h.Full = in.RebalanceTimeoutMillis >= 0 && in.Topics != nil && (in.SubscribedTopicNames != nil || in.SubscribedTopicRegex != nil)
	s.opts.Groups.ConsumerHeartbeat(in.Group, h, func(a consumer.Reply) {
		resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
		resp.MemberID, resp.MemberEpoch = &a.MemberID, a.Epoch
		resp.HeartbeatIntervalMillis = int32(a.Interval.Milliseconds())
		if a.Reason != refusal.None {
			resp.ErrorCode, resp.ErrorMessage = codes.ForReason(a.Reason), &a.Detail
		} else if a.Assignment != nil {
			as := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
			as.Topics = []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{}
			for _, id := range a.Assignment.Topics() {
				t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
				t.TopicID, t.Partitions = id, a.Assignment[id]
				as.Topics = append(as.Topics, t)
			}
			resp.Assignment = &as
		}
		done(resp, nil)
	})
}
