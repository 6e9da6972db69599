package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// DescribeTransactions, 0 (KIP-664).
func (s *Server) describeTransactions(_ context.Context, _ *conn.Request, in *kmsg.DescribeTransactionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	for _, id := range in.TransactionalIDs {
		resp.TransactionStates = append(resp.TransactionStates, s.transactionState(id))
	}
	return resp, nil
}

func (s *Server) transactionState(id string) kmsg.DescribeTransactionsResponseTransactionState {
	out := kmsg.NewDescribeTransactionsResponseTransactionState()
	out.TransactionalID = id
	if id == "" {
		out.ErrorCode = codes.InvalidRequest
		return out
	}
	t, ok := s.opts.Txns.Describe(id)
	if !ok {
		out.ErrorCode = codes.TransactionalIDNotFound
		return out
	}
	out.State, out.TimeoutMillis, out.StartTimestamp = t.State.String(), t.TimeoutMS, t.StartedMS
	out.ProducerID, out.ProducerEpoch = t.ProducerID, t.Epoch
	for _, topic := range t.Parts.Topics() {
		o := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
		o.Topic, o.Partitions = topic, t.Parts[topic]
		out.Topics = append(out.Topics, o)
	}
	return out
}
