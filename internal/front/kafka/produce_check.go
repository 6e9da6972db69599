package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// decompressLimit bounds what one batch may decompress to where a rule needs its
// records, in bytes.
const decompressLimit = 128 << 20

// maxRecordErrors bounds the records that one refusal names.
const maxRecordErrors = 100

// recordErrors says which records of a batch break a rule (KIP-467).
type recordErrors struct {
	code    codes.Code
	indexes []int32
	each    string // why, for each of them
	total   int
	topic   string
}

func (e *recordErrors) Error() string {
	return fmt.Sprintf("topic %q refuses %d record(s) of the batch, the first at index %d: %s; nothing of the batch was appended",
		e.topic, e.total, e.indexes[0], e.each)
}

// Code and ClientText make it an error with a code of its own (package codes).
func (e *recordErrors) Code() codes.Code { return e.code }

// ClientText is Error.
func (e *recordErrors) ClientText() string { return e.Error() }

func (e *recordErrors) add(index int32) {
	e.total++
	if len(e.indexes) < maxRecordErrors {
		e.indexes = append(e.indexes, index)
	}
}

func asRecordErrors(err error) (*recordErrors, bool) { return errors.AsType[*recordErrors](err) }

// checkBatch proves that recs is one batch that topic t accepts at time now, and
// gives it as it is to be stored. Records are looked at only where a rule needs
// them: a compacted topic, timestamp limits that the header does not meet, or
// another compression than the topic's.
func checkBatch(t *topics.Topic, recs []byte, version int16, now time.Time) (model.Batch, error) {
	b, err := singleBatch(t, recs)
	if err != nil {
		return nil, err
	}
	if err := checkHeader(b, version); err != nil {
		return nil, err
	}
	if t.Config.CleanupCompact {
		if err := checkKeys(t, b); err != nil {
			return nil, err
		}
	}
	if err := checkTimes(t, b, now); err != nil {
		return nil, err
	}
	return recompress(t, b)
}

// singleBatch cuts the one batch out of a partition's records.
func singleBatch(t *topics.Topic, recs []byte) (model.Batch, error) {
	if len(recs) == 0 {
		return nil, coded(codes.InvalidRecord, "no record batch was sent; a partition needs exactly one")
	}
	if len(recs) > magicAt && recs[magicAt] != 2 {
		return nil, coded(codes.InvalidRecord, "message format %d is not supported; send magic 2 (any client since Kafka 0.11)", int8(recs[magicAt]))
	}
	b, rest, err := model.NextBatch(recs)
	if err != nil {
		return nil, &model.Error{Class: model.ClassCorrupt, Detail: err.Error()}
	}
	if limit := t.Config.MaxMessageBytes; b.Size() > limit {
		return nil, tooLarge(t.Name, b.Size(), limit)
	}
	if len(rest) != 0 {
		return nil, coded(codes.InvalidRecord, "%d bytes follow the record batch; a partition takes exactly one batch", len(rest))
	}
	if !b.ValidCRC() {
		return nil, model.Err(model.ClassCorrupt, "the record batch does not match its CRC-32C; it was damaged on the way, send it again")
	}
	return b, nil
}

// magicAt is where a batch, or a message of an older format, has its magic byte.
const magicAt = 16

func tooLarge(topic string, size, limit int) error {
	return model.Err(model.ClassTooLarge, fmt.Sprintf(
		"the record batch has %d bytes, topic %q accepts %d: send smaller batches or records, or raise the topic's max.message.bytes", size, topic, limit))
}

// checkHeader holds what a client may put into a batch's header (KIP-98).
func checkHeader(b model.Batch, version int16) error {
	switch n := b.NumRecords(); {
	case b.BaseOffset() != 0:
		return coded(codes.InvalidRecord, "the base offset of a new batch is %d; it must be 0", b.BaseOffset())
	case n <= 0:
		return coded(codes.InvalidRecord, "the batch says it has %d records; it must have at least one", n)
	case int64(b.LastOffsetDelta())+1 != int64(n):
		return coded(codes.InvalidRecord, "the batch says it has %d records and %d offsets", n, int64(b.LastOffsetDelta())+1)
	case b.IsControl():
		return coded(codes.InvalidRecord, "clients cannot write control batches")
	case b.ProducerID() >= 0 && b.BaseSequence() < 0:
		return coded(codes.InvalidRecord, "producer %d sent a batch with sequence %d", b.ProducerID(), b.BaseSequence())
	case b.ProducerID() >= 0 && b.ProducerEpoch() < 0:
		return coded(codes.InvalidRecord, "producer %d sent a batch with epoch %d", b.ProducerID(), b.ProducerEpoch())
	case b.ProducerID() < 0 && b.IsTransactional():
		return coded(codes.InvalidRecord, "a transactional batch needs a producer id")
	case b.Compression() > records.Zstd:
		return coded(codes.UnsupportedCompressionType, "compression codec %d is unknown", b.Compression())
	case b.Compression() == records.Zstd && version < 7:
		return coded(codes.UnsupportedCompressionType, "zstd needs Produce version 7 or newer, this is %d: upgrade the client or use another codec", version)
	}
	return nil
}

// eachRecord checks the form of b's records and calls f with index and record.
func eachRecord(b model.Batch, f func(i int32, r records.Record)) error {
	r, err := records.Open(b, decompressLimit)
	if err != nil {
		return malformed(err)
	}
	for i := int32(0); ; i++ {
		rec, ok, err := r.Next()
		switch {
		case err != nil:
			return malformed(err)
		case !ok && i != b.NumRecords():
			return coded(codes.InvalidRecord, "the batch says it has %d records and holds %d", b.NumRecords(), i)
		case !ok:
			return nil
		case rec.OffsetDelta != i:
			return coded(codes.InvalidRecord, "record %d of the batch has offset delta %d", i, rec.OffsetDelta)
		}
		f(i, rec)
	}
}

// malformed is a batch whose CRC is right and whose records are not: sending it
// again cannot help, so it is not called corrupt.
func malformed(err error) error {
	return coded(codes.InvalidRecord, "the batch's records cannot be read: %s", model.ClientText(err))
}

// checkKeys refuses records without a key: compaction could not tell them apart.
func checkKeys(t *topics.Topic, b model.Batch) error {
	bad := &recordErrors{code: codes.InvalidRecord, topic: t.Name, each: "a compacted topic needs a key on every record"}
	if err := eachRecord(b, func(i int32, r records.Record) {
		if r.Key == nil {
			bad.add(i)
		}
	}); err != nil {
		return err
	}
	return bad.errorOrNil()
}

func (e *recordErrors) errorOrNil() error {
	if e.total == 0 {
		return nil
	}
	return e
}

// checkTimes holds the limits of message.timestamp.before.max.ms and .after.max.ms
// (CreateTime only). The future is checked by the header; the past needs the records.
func checkTimes(t *topics.Topic, b model.Batch, now time.Time) error {
	before, after := t.Config.TimestampBeforeMax, t.Config.TimestampAfterMax
	if t.Config.LogAppendTime {
		return nil
	}
	latest := int64(1<<63 - 1)
	if after >= 0 {
		latest = now.Add(after).UnixMilli()
	}
	if before < 0 && b.MaxTimestamp() <= latest {
		return nil
	}
	earliest := int64(noTimestamp)
	if before >= 0 {
		earliest = now.Add(-before).UnixMilli()
	}
	bad := &recordErrors{code: codes.InvalidTimestamp, topic: t.Name, each: fmt.Sprintf(
		"its timestamp lies outside %d to %d (milliseconds; message.timestamp.before.max.ms and message.timestamp.after.max.ms)", earliest, latest)}
	if err := eachRecord(b, func(i int32, r records.Record) {
		if ts := b.FirstTimestamp() + r.TimestampDelta; ts > latest || ts < earliest && ts != noTimestamp {
			bad.add(i)
		}
	}); err != nil {
		return err
	}
	if bad.total == 0 && b.MaxTimestamp() > latest {
		return coded(codes.InvalidRecord, "the batch says its latest timestamp is %d; none of its records has it", b.MaxTimestamp())
	}
	return bad.errorOrNil()
}

// noTimestamp is the timestamp of a record that has none.
const noTimestamp = -1

// recompress gives the batch in the topic's compression, if that is not the
// producer's choice.
func recompress(t *topics.Topic, b model.Batch) (model.Batch, error) {
	codec, fixed := records.CodecByName(t.Config.CompressionType)
	if !fixed || codec == b.Compression() {
		return b, nil
	}
	if err := eachRecord(b, func(int32, records.Record) {}); err != nil {
		return nil, err
	}
	out, err := records.Recompress(b, codec, decompressLimit)
	if err != nil {
		return nil, malformed(err)
	}
	if limit := t.Config.MaxMessageBytes; out.Size() > limit {
		return nil, tooLarge(t.Name, out.Size(), limit)
	}
	return out, nil
}
