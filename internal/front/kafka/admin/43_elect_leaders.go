package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// ElectLeaders, 0-2: the one node leads every partition, so none needs an election.
// Asked for all partitions (null), the answer lists those that had one: none.
func (h *Handlers) electLeaders(_ context.Context, r *conn.Request, in *kmsg.ElectLeadersRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrElectLeadersResponse()
	if in.ElectionType != 0 && in.ElectionType != 1 {
		resp.ErrorCode = codes.InvalidRequest
		return resp, nil
	}
	for _, t := range in.Topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = t.Topic
		for _, index := range t.Partitions {
			err := h.checkPartition(t.Topic, index)
			if err == nil {
				err = codes.Errorf(codes.ElectionNotNeeded, "node %d leads the partition already", h.NodeID)
			}
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = index, codes.For(r.Key, err), codes.Text(err)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
