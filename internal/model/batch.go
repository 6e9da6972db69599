package model

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Layout of a record batch, magic 2 (Kafka's only stored form; KIP-98):
// byte positions of the fixed header, which is BatchHeaderSize bytes long.
const (
	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posFirstTimestamp  = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posNumRecords      = 57

	// BatchHeaderSize is the size of a batch without records.
	BatchHeaderSize = 61
	// batchLengthOverhead is what the length field does not count.
	batchLengthOverhead = 12

	attrCompression   = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// NoProducer is the producer id of a batch that no idempotent producer wrote.
const NoProducer int64 = -1

// Castagnoli is the polynomial of every checksum in Daybook and in Kafka's batches.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is one whole record batch. The accessors assume at least
// BatchHeaderSize bytes; NextBatch and CheckBatch establish that.
type Batch []byte

// Base and last offset, and size in bytes.
func (b Batch) BaseOffset() Offset { return Offset(binary.BigEndian.Uint64(b[posBaseOffset:])) }

// LastOffset is the offset of the last record slot, kept by compaction.
func (b Batch) LastOffset() Offset { return b.BaseOffset() + Offset(b.LastOffsetDelta()) }

// LastOffsetDelta is last minus base offset.
func (b Batch) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(b[posLastOffsetDelta:]))
}

// Size is the number of bytes of the whole batch, by its own length field.
func (b Batch) Size() int {
	return int(int32(binary.BigEndian.Uint32(b[posLength:]))) + batchLengthOverhead
}

// LeaderEpoch is the leader epoch that appended the batch.
func (b Batch) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(b[posLeaderEpoch:])) }

// Magic is the format version; only 2 is stored.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// Attributes holds compression, timestamp type, transactional and control flags.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[posAttributes:])) }

// Compression is the codec number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
func (b Batch) Compression() int8 { return int8(b.Attributes() & attrCompression) }

// IsLogAppendTime reports the timestamp type.
func (b Batch) IsLogAppendTime() bool { return b.Attributes()&attrLogAppendTime != 0 }

// IsTransactional reports whether the batch belongs to a transaction.
func (b Batch) IsTransactional() bool { return b.Attributes()&attrTransactional != 0 }

// IsControl reports whether the batch holds a transaction marker instead of records.
func (b Batch) IsControl() bool { return b.Attributes()&attrControl != 0 }

// HasDeleteHorizon reports that FirstTimestamp holds the time from which
// compaction may drop the batch's tombstones and markers (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b.Attributes()&attrDeleteHorizon != 0 }

// FirstTimestamp is in milliseconds since the epoch; record deltas count from it.
func (b Batch) FirstTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[posFirstTimestamp:])) }

// MaxTimestamp is the largest record timestamp, in milliseconds.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[posMaxTimestamp:])) }

// ProducerID, or NoProducer.
func (b Batch) ProducerID() int64 { return int64(binary.BigEndian.Uint64(b[posProducerID:])) }

// ProducerEpoch goes with ProducerID.
func (b Batch) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(b[posProducerEpoch:])) }

// BaseSequence is the sequence of the first record; it wraps at the int32 maximum.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[posBaseSequence:])) }

// NumRecords counts the records that are stored.
func (b Batch) NumRecords() int32 { return int32(binary.BigEndian.Uint32(b[posNumRecords:])) }

// CRC is the stored checksum of attributes to end.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[posCRC:]) }

// Payload is the records section, compressed as the attributes say.
func (b Batch) Payload() []byte { return b[BatchHeaderSize:] }

// SetBaseOffset and SetLeaderEpoch change fields outside the checksum.
func (b Batch) SetBaseOffset(o Offset) { binary.BigEndian.PutUint64(b[posBaseOffset:], uint64(o)) }

// SetLeaderEpoch changes a field outside the checksum.
func (b Batch) SetLeaderEpoch(e int32) { binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(e)) }

// StampLogAppendTime sets the timestamp type, gives the batch one time for all
// its records (milliseconds) and redoes the checksum.
func (b Batch) StampLogAppendTime(ms int64) {
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(b.Attributes()|attrLogAppendTime))
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ms))
	b.SealCRC()
}

// SetMaxTimestamp and SetTimeFlags are for compaction, which makes a batch anew:
// SealCRC must follow.
func (b Batch) SetMaxTimestamp(ms int64) { binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ms)) }

// SetTimeFlags sets the timestamp type, and whether FirstTimestamp is a delete horizon.
func (b Batch) SetTimeFlags(logAppendTime, deleteHorizon bool) {
	a := b.Attributes() &^ (attrLogAppendTime | attrDeleteHorizon)
	if logAppendTime {
		a |= attrLogAppendTime
	}
	if deleteHorizon {
		a |= attrDeleteHorizon
	}
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(a))
}

// SealCRC computes and stores the checksum.
func (b Batch) SealCRC() {
	binary.BigEndian.PutUint32(b[posCRC:], crc32.Checksum(b[posAttributes:], Castagnoli))
}

// ValidCRC compares the stored checksum with the content.
func (b Batch) ValidCRC() bool {
	return crc32.Checksum(b[posAttributes:], Castagnoli) == b.CRC()
}

// NextBatch cuts the first whole batch off buf. It checks only what cutting
// needs: the length field and the bytes that are there.
func NextBatch(buf []byte) (b Batch, rest []byte, err error) {
	if len(buf) < BatchHeaderSize {
		return nil, buf, fmt.Errorf("record batch of %d bytes is shorter than the header's %d", len(buf), BatchHeaderSize)
	}
	n := int64(int32(binary.BigEndian.Uint32(buf[posLength:]))) + batchLengthOverhead
	if n < BatchHeaderSize || n > int64(len(buf)) {
		return nil, buf, fmt.Errorf("record batch says it has %d bytes, %d are there", n, len(buf))
	}
	return Batch(buf[:n:n]), buf[n:], nil
}
