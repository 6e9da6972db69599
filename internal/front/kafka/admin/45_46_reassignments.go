package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// AlterPartitionReassignments, 0-1: every replica is where it can be; asking for
// that succeeds at once, and there is never a reassignment to cancel.
func (h *Handlers) alterPartitionReassignments(_ context.Context, r *conn.Request, in *kmsg.AlterPartitionAssignmentsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	resp.AllowReplicationFactorChange = in.AllowReplicationFactorChange
	for _, t := range in.Topics {
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = t.Topic
		for _, q := range t.Partitions {
			err := h.checkPartition(t.Topic, q.Partition)
			switch {
			case err != nil:
			case q.Replicas == nil:
				err = codes.Errorf(codes.NoReassignmentInProgress, "the partition is not being moved")
			default:
				err = h.checkReplicas(q.Replicas)
			}
			p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = q.Partition, codes.For(r.Key, err), codes.Text(err)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// ListPartitionReassignments, 0: none is ever under way.
func (h *Handlers) listPartitionReassignments(context.Context, *conn.Request, *kmsg.ListPartitionReassignmentsRequest) (kmsg.Response, error) {
	return kmsg.NewPtrListPartitionReassignmentsResponse(), nil
}
