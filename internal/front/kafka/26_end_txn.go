package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// EndTxn, 0-5. v2 knows PRODUCER_FENCED, v3 is flexible, v4 knows
// TRANSACTION_ABORTABLE; v5 is transactions v2: the answer carries the identity to
// go on with (KIP-890).
func (s *Server) endTxn(ctx context.Context, r *conn.Request, in *kmsg.EndTxnRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrEndTxnResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if in.TransactionalID == "" {
		resp.ErrorCode = codes.InvalidRequest
		return resp, nil
	}
	end := txn.End{ProducerID: in.ProducerID, Epoch: in.ProducerEpoch, Commit: in.Commit, Version: txn.V1}
	if r.Version >= 5 {
		end.Version = txn.V2
	}
	p, err := s.opts.Txns.End(ctx, in.TransactionalID, end)
	if err != nil {
		resp.ErrorCode = producerCode(r, err, 2)
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
	return resp, nil
}
