package share

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

const keyShareAcknowledge = 79

// ShareAcknowledge, 1-2: settles without fetching. v2 brings renewal (KIP-1222).
func (h *Handlers) acknowledge(ctx context.Context, r *conn.Request, in *kmsg.ShareAcknowledgeRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrShareAcknowledgeResponse()
	id, err := sessionOf(in.GroupID, in.MemberID)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(keyShareAcknowledge, err)
		return resp, nil
	}
	if in.ShareSessionEpoch == epochInitial {
		resp.ErrorCode = codes.InvalidShareSessionEpoch
		return resp, nil
	}
	s, c := h.sessions.use(r.Conn, id, in.ShareSessionEpoch, h.ended)
	if c != codes.None {
		resp.ErrorCode = c
		return resp, nil
	}
	resp.AcquisitionLockTimeoutMillis = int32(h.Groups.LockDuration(id.group).Milliseconds())
	var all []acks
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			a := acks{id: model.PartitionID{Topic: t.TopicID, Index: p.Partition}}
			for _, b := range p.AcknowledgementBatches {
				a.batches = append(a.batches, batch{b.FirstOffset, b.LastOffset, b.AcknowledgeTypes})
			}
			all = append(all, a)
		}
	}
	outcome := h.settle(ctx, id, all, in.IsRenewAck)
	if in.ShareSessionEpoch == epochFinal {
		h.sessions.drop(s)
		h.Groups.Release(id.group, id.member)
	}
	i := 0
	for _, t := range in.Topics {
		out := kmsg.NewShareAcknowledgeResponseTopic()
		out.TopicID = t.TopicID
		for _, p := range t.Partitions {
			part := kmsg.NewShareAcknowledgeResponseTopicPartition()
			part.Partition = p.Partition
			part.ErrorCode, part.ErrorMessage = code(keyShareAcknowledge, outcome[i].err)
			part.CurrentLeader.LeaderID, part.CurrentLeader.LeaderEpoch = 0, 0
			out.Partitions = append(out.Partitions, part)
			i++
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
