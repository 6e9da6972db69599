package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// AddOffsetsToTxn, 0-4. v2 knows PRODUCER_FENCED, v3 is flexible, v4 knows
// TRANSACTION_ABORTABLE. It adds the partition that holds the group's offsets;
// clients of transactions v2 do not send it.
func (s *Server) addOffsetsToTxn(ctx context.Context, r *conn.Request, in *kmsg.AddOffsetsToTxnRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAddOffsetsToTxnResponse()
	switch {
	case in.TransactionalID == "":
		resp.ErrorCode = codes.InvalidRequest
		return resp, nil
	case in.Group == "":
		resp.ErrorCode = codes.InvalidGroupID
		return resp, nil
	}
	p := txn.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}
	err := s.opts.Txns.Add(ctx, in.TransactionalID, p, s.offsetsPart(in.Group), txn.V1)
	resp.ErrorCode = producerCode(r, err, 2)
	return resp, nil
}

// offsetsPart is the partition that holds the offsets of a group.
func (s *Server) offsetsPart(group string) txn.Parts {
	return txn.Parts{groups.OffsetsTopic: {s.opts.Groups.PartitionFor(group)}}
}
