package share

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

const keyHeartbeat = 76

// ShareGroupHeartbeat, 1 (KIP-932). Members choose their own ids.
func (h *Handlers) heartbeat(_ context.Context, r *conn.Request, in *kmsg.ShareGroupHeartbeatRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrShareGroupHeartbeatResponse()
	beat := sharegroups.Heartbeat{
		Group: in.GroupID, Member: in.MemberID, Epoch: in.MemberEpoch,
		Client: r.ClientID, Host: h.Host(r.Conn), Topics: in.SubscribedTopicNames,
	}
	if in.RackID != nil {
		beat.Rack = *in.RackID
	}
	a, err := h.Groups.Heartbeat(beat)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(keyHeartbeat, err)
		return resp, nil
	}
	resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = &in.MemberID, a.Epoch, int32(a.Interval.Milliseconds())
	if a.Assignment != nil {
		assigned := kmsg.NewShareGroupHeartbeatResponseAssignment()
		for _, id := range sortedTopics(a.Assignment) {
			tp := kmsg.NewShareGroupHeartbeatResponseAssignmentTopicPartition()
			tp.TopicID, tp.Partitions = id, a.Assignment[id]
			assigned.TopicPartitions = append(assigned.TopicPartitions, tp)
		}
		resp.Assignment = &assigned
	}
	return resp, nil
}

func sortedTopics(a sharegroups.Assignment) []model.TopicID {
	ids := make([]model.TopicID, 0, len(a))
	for id := range a {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b model.TopicID) int { return model.PartitionID{Topic: a}.Compare(model.PartitionID{Topic: b}) })
	return ids
}
