package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// AddPartitionsToTxn, 0-5. v2 knows PRODUCER_FENCED, v3 is flexible. From v4 on it
// comes from brokers only: several transactions at once, and verify_only asks
// whether partitions belong to a transaction without adding them (KIP-890).
//
// One partition that does not exist fails the whole transaction: the others are
// answered OPERATION_NOT_ATTEMPTED.
func (s *Server) addPartitionsToTxn(ctx context.Context, r *conn.Request, in *kmsg.AddPartitionsToTxnRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	if r.Version < 4 {
		t := kmsg.NewAddPartitionsToTxnRequestTransaction()
		t.TransactionalID, t.ProducerID, t.ProducerEpoch = in.TransactionalID, in.ProducerID, in.ProducerEpoch
		for _, topic := range in.Topics {
			t.Topics = append(t.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: topic.Topic, Partitions: topic.Partitions})
		}
		for _, topic := range s.addToTxn(ctx, r, &t, txn.V1) {
			out := kmsg.NewAddPartitionsToTxnResponseTopic()
			out.Topic = topic.Topic
			for _, p := range topic.Partitions {
				out.Partitions = append(out.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp, nil
	}
	for i := range in.Transactions {
		out := kmsg.NewAddPartitionsToTxnResponseTransaction()
		out.TransactionalID = in.Transactions[i].TransactionalID
		out.Topics = s.addToTxn(ctx, r, &in.Transactions[i], txn.V2)
		resp.Transactions = append(resp.Transactions, out)
	}
	return resp, nil
}

// addToTxn adds or verifies the partitions of one transaction.
func (s *Server) addToTxn(ctx context.Context, r *conn.Request, t *kmsg.AddPartitionsToTxnRequestTransaction, v txn.Version) []kmsg.AddPartitionsToTxnResponseTransactionTopic {
	p := txn.Producer{ID: t.ProducerID, Epoch: t.ProducerEpoch}
	named, known := txn.Parts{}, true
	for _, topic := range t.Topics {
		named[topic.Topic] = append(named[topic.Topic], topic.Partitions...)
		for _, i := range topic.Partitions {
			known = known && s.hasPartition(topic.Topic, i)
		}
	}
	var all codes.Code
	switch {
	case t.TransactionalID == "":
		all = codes.InvalidRequest
	case !known:
		all = codes.OperationNotAttempted
	case !t.VerifyOnly:
		all = producerCode(r, s.opts.Txns.Add(ctx, t.TransactionalID, p, txn.Parts{}.With(named), v), 2)
	}
	out := make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, 0, len(t.Topics))
	for _, topic := range t.Topics {
		o := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
		o.Topic = topic.Topic
		for _, i := range topic.Partitions {
			code := all
			switch {
			case all == codes.OperationNotAttempted && !s.hasPartition(topic.Topic, i):
				code = codes.UnknownTopicOrPartition
			case all == codes.None && t.VerifyOnly:
				code = producerCode(r, s.opts.Txns.Verify(t.TransactionalID, p, topic.Topic, i), 2)
			}
			o.Partitions = append(o.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: i, ErrorCode: code})
		}
		out = append(out, o)
	}
	return out
}

func (s *Server) hasPartition(topic string, index int32) bool {
	t, ok := s.opts.Topics.ByName(topic)
	if !ok {
		return false
	}
	_, ok = t.Partition(index)
	return ok
}
