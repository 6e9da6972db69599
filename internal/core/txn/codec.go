package txn

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// tagLastEpoch is a tagged field beside Kafka's own, which readers of the format
// pass over: Txn.LastEpoch, so that a retry is recognised after a restart too.
const tagLastEpoch = 0x4442

// record gives t as a record of __transaction_state.
func (t *Txn) record() statelog.Record {
	v := kmsg.NewTxnMetadataValue()
	v.Version = 1
	v.ProducerID, v.ProducerEpoch = t.ProducerID, t.Epoch
	v.PreviousProducerID, v.NextProducerID = t.PrevProducerID, t.NextProducerID
	v.TimeoutMillis, v.State = t.TimeoutMS, kmsg.TransactionState(t.State)
	v.ClientTransactionVersion = int16(t.Version)
	v.StartTimestamp, v.LastUpdateTimestamp = t.StartedMS, t.UpdatedMS
	if t.State != Empty { // Kafka: null for Empty, else a list
		v.Topics = []kmsg.TxnMetadataValueTopic{}
	}
	for _, topic := range t.Parts.Topics() {
		v.Topics = append(v.Topics, kmsg.TxnMetadataValueTopic{Topic: topic, Partitions: t.Parts[topic]})
	}
	if t.LastEpoch != noEpoch {
		v.UnknownTags.Set(tagLastEpoch, binary.BigEndian.AppendUint16(nil, uint16(t.LastEpoch)))
	}
	return statelog.Record{Key: recordKey(t.ID), Value: v.AppendTo(nil)}
}

func recordKey(id string) []byte {
	k := kmsg.NewTxnMetadataKey()
	k.TransactionalID = id
	return k.AppendTo(nil)
}

// readRecord reads a record: the id, and its state or nil if it was removed. ok is
// false for a key of another kind, which later versions of Kafka may write.
func readRecord(r statelog.Record) (id string, t *Txn, ok bool, err error) {
	if len(r.Key) < 2 || binary.BigEndian.Uint16(r.Key) != 0 {
		return "", nil, false, nil
	}
	k := kmsg.NewTxnMetadataKey()
	if err := k.ReadFrom(r.Key); err != nil {
		return "", nil, false, corrupt("key", err)
	}
	if r.Value == nil {
		return k.TransactionalID, nil, true, nil
	}
	v := kmsg.NewTxnMetadataValue()
	if err := v.ReadFrom(r.Value); err != nil {
		return "", nil, false, corrupt(k.TransactionalID, err)
	}
	if v.Version < 0 || v.Version > 1 || v.State < 0 || State(v.State) > PrepareEpochFence {
		return "", nil, false, corrupt(k.TransactionalID, fmt.Errorf("version %d, state %d", v.Version, v.State))
	}
	return k.TransactionalID, fromValue(k.TransactionalID, &v), true, nil
}

func fromValue(id string, v *kmsg.TxnMetadataValue) *Txn {
	t := &Txn{
		ID: id, ProducerID: v.ProducerID, Epoch: v.ProducerEpoch, LastEpoch: noEpoch,
		PrevProducerID: v.PreviousProducerID, NextProducerID: v.NextProducerID,
		TimeoutMS: v.TimeoutMillis, State: State(v.State), Version: Version(v.ClientTransactionVersion),
		StartedMS: v.StartTimestamp, UpdatedMS: v.LastUpdateTimestamp,
	}
	for _, topic := range v.Topics {
		if t.Parts == nil {
			t.Parts = Parts{}
		}
		ix := slices.Concat(t.Parts[topic.Topic], topic.Partitions)
		slices.Sort(ix)
		t.Parts[topic.Topic] = slices.Compact(ix)
	}
	v.UnknownTags.Each(func(tag uint32, val []byte) {
		if tag == tagLastEpoch && len(val) == 2 {
			t.LastEpoch = int16(binary.BigEndian.Uint16(val))
		}
	})
	return t
}

func corrupt(what string, err error) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "read transaction state", Object: what, Cause: err}
}
