package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// InitProducerId, 0-5. v2 is flexible; v3 says who the producer believes it is, to
// get a new epoch (KIP-360); v4 knows PRODUCER_FENCED; v5 is for transactions v2.
//
// Without a transactional id every call gets a producer id that nobody had before.
func (s *Server) initProducerID(ctx context.Context, r *conn.Request, in *kmsg.InitProducerIDRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	p, err := s.producerFor(ctx, r, in)
	switch {
	case errors.Is(err, errInitRequest):
		resp.ErrorCode = codes.InvalidRequest
	case errors.Is(err, txn.ErrTimeout):
		resp.ErrorCode = codes.InvalidTransactionTimeout
	case err != nil:
		resp.ErrorCode = producerCode(r, err, 4)
	default:
		resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
	}
	return resp, nil
}

var errInitRequest = errors.New("an empty transactional id, or half an identity")

func (s *Server) producerFor(ctx context.Context, r *conn.Request, in *kmsg.InitProducerIDRequest) (txn.Producer, error) {
	if r.Version < 3 {
		in.ProducerID, in.ProducerEpoch = -1, -1
	}
	if (in.ProducerID == -1) != (in.ProducerEpoch == -1) {
		return txn.Producer{}, errInitRequest
	}
	if in.TransactionalID == nil {
		return s.opts.Txns.NewProducer(ctx)
	}
	if *in.TransactionalID == "" {
		return txn.Producer{}, errInitRequest
	}
	return s.opts.Txns.Init(ctx, *in.TransactionalID, txn.Init{
		TimeoutMS: in.TransactionTimeoutMillis, ExpectedID: in.ProducerID, ExpectedEpoch: in.ProducerEpoch,
	})
}
