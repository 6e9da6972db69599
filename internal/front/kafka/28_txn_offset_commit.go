package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// TxnOffsetCommit, 0-6. v2 has leader epochs; v3 is flexible and names the member
// and its generation (KIP-447); v4 knows TRANSACTION_ABORTABLE; v5 adds the group's
// partition to the transaction itself (KIP-890); v6 has topic ids instead of names.
func (s *Server) txnOffsetCommit(_ context.Context, r *conn.Request, in *kmsg.TxnOffsetCommitRequest, done func(kmsg.Response, error)) {
	cm := groups.Commit{
		Group: in.Group, MemberID: in.MemberID, InstanceID: orEmpty(in.InstanceID), Generation: in.Generation, Retention: -1,
		Txn: &groups.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}, Items: txnCommitItems(in, r.Version),
	}
	answer := func(code func(i int) codes.Code) { done(txnOffsetResponse(in, code), nil) }
	same := func(code codes.Code) { answer(func(int) codes.Code { return code }) }
	switch {
	case in.TransactionalID == "":
		same(codes.InvalidRequest)
		return
	case in.Group == "":
		same(codes.InvalidGroupID)
		return
	}
	version := txn.V1
	if r.Version >= 5 {
		version = txn.V2
	}
	p := txn.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}
	err := s.opts.Txns.Enlist(in.TransactionalID, p, s.offsetsPart(in.Group), version, func() error {
		s.opts.Groups.Commit(cm, func(res groups.CommitResult) {
			answer(func(i int) codes.Code { return txnItemCode(res, i) })
		})
		return nil
	})
	if err != nil {
		same(txnOffsetCode(r, err))
	}
}

func txnCommitItems(in *kmsg.TxnOffsetCommitRequest, version int16) []groups.CommitItem {
	var items []groups.CommitItem
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			it := groups.CommitItem{
				Topic: t.Topic, TopicID: t.TopicID, Partition: p.Partition,
				Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: orEmpty(p.Metadata),
			}
			if version < 2 {
				it.LeaderEpoch = -1
			}
			items = append(items, it)
		}
	}
	return items
}

// txnOffsetResponse answers every partition with code of its place in the request.
func txnOffsetResponse(in *kmsg.TxnOffsetCommitRequest, code func(i int) codes.Code) kmsg.Response {
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	i := 0
	for _, t := range in.Topics {
		out := kmsg.NewTxnOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			o := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			o.Partition, o.ErrorCode = p.Partition, code(i)
			out.Partitions = append(out.Partitions, o)
			i++
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// txnItemCode is the code of one item: producers know nothing of groups that do
// not exist, nor of member epochs.
func txnItemCode(res groups.CommitResult, i int) codes.Code {
	switch res.All {
	case refusal.None:
		return codes.ForReason(res.Each[i])
	case refusal.GroupNotFound, refusal.StaleMemberEpoch:
		return codes.IllegalGeneration
	}
	return codes.ForReason(res.All)
}

// txnOffsetCode is the code for what the coordinator refused, by what the client's
// version takes.
func txnOffsetCode(r *conn.Request, err error) codes.Code {
	switch class := model.ClassOf(err); {
	case class == model.ClassNotInTxn && r.Version < 4:
		return codes.InvalidTxnState
	case class == model.ClassConcurrentTxn && r.Version < 5:
		return codes.CoordinatorNotAvailable
	}
	return codes.For(r.Key, err)
}
