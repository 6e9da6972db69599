package kafka

import (
	"errors"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
)

// submit appends one batch. A batch that would begin a transaction in its partition
// goes through the coordinator: from v12 on the partition is added to the
// transaction, before, it must be part of it already (KIP-890).
func (c *produceCall) submit(t *topics.Topic, item partition.Append, done func([]partition.Result, error)) error {
	err := partition.Submit([]partition.Append{item}, done)
	if !errors.Is(err, partition.ErrNotEnlisted) {
		return err
	}
	if c.in.TransactionID == nil || *c.in.TransactionID == "" || c.s.opts.Txns == nil {
		return coded(codes.InvalidTxnState, "a transactional batch needs the transactional id in its request")
	}
	p := txn.Producer{ID: item.Batch.ProducerID(), Epoch: item.Batch.ProducerEpoch()}
	version, parts := txn.V1, txn.Parts{t.Name: {c.index(item)}}
	if item.TxnV2 {
		version, parts = txn.V2, c.parts()
	}
	item.Enlisted = true
	err = c.s.opts.Txns.Enlist(*c.in.TransactionID, p, parts, version, func() error {
		return partition.Submit([]partition.Append{item}, done)
	})
	return c.forVersion(err)
}

func (c *produceCall) index(item partition.Append) int32 { return item.To.ID().Index }

// parts are all partitions of the request: they are added in one step, with the
// first of them.
func (c *produceCall) parts() txn.Parts {
	named := txn.Parts{}
	for i := range c.in.Topics {
		t := &c.in.Topics[i]
		topic, err := c.s.lookupTopic(t.Topic, t.TopicID, c.version >= 13)
		if err != nil {
			continue
		}
		for _, p := range t.Partitions {
			if _, ok := topic.Partition(p.Partition); ok {
				named[topic.Name] = append(named[topic.Name], p.Partition)
			}
		}
	}
	return txn.Parts{}.With(named)
}

// forVersion gives old clients errors that they know how to take: before v11 they
// do not know TRANSACTION_ABORTABLE, before v12 they do not retry a produce on
// CONCURRENT_TRANSACTIONS.
func (c *produceCall) forVersion(err error) error {
	switch class := model.ClassOf(err); {
	case err == nil:
		return nil
	case class == model.ClassNotInTxn && c.version < 11:
		return coded(codes.InvalidTxnState, "%s", model.ClientText(err))
	case class == model.ClassConcurrentTxn && c.version < 12:
		return coded(codes.NotEnoughReplicas, "%s", model.ClientText(err))
	}
	return err
}
