package kafka

import (
	"context"
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// ListTransactions, 0-2 (KIP-664). v1 filters by duration (KIP-994), v2 by an RE2
// pattern that must match the whole transactional id (KIP-1152).
func (s *Server) listTransactions(_ context.Context, r *conn.Request, in *kmsg.ListTransactionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListTransactionsResponse()
	f := txn.Filter{ProducerIDs: in.ProducerIDFilters, LongerThanMS: -1}
	if r.Version >= 1 {
		f.LongerThanMS = in.DurationFilterMillis
	}
	for _, name := range in.StateFilters {
		if state, ok := txn.ParseState(name); ok {
			f.States = append(f.States, state)
		} else {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	if r.Version >= 2 && in.TransactionalIDPattern != nil && *in.TransactionalIDPattern != "" {
		re, err := regexp.Compile(`\A(?:` + *in.TransactionalIDPattern + `)\z`)
		if err != nil {
			resp.ErrorCode = codes.InvalidRegularExpression
			return resp, nil
		}
		f.ID = re
	}
	if len(in.StateFilters) > 0 && len(f.States) == 0 {
		return resp, nil // every state asked for is unknown
	}
	for _, t := range s.opts.Txns.List(f) {
		o := kmsg.NewListTransactionsResponseTransactionState()
		o.TransactionalID, o.ProducerID, o.TransactionState = t.ID, t.ProducerID, t.State.String()
		resp.TransactionStates = append(resp.TransactionStates, o)
	}
	return resp, nil
}
