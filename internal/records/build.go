package records

import (
	"encoding/binary"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
)

// Meta is what a batch says of all its records.
type Meta struct {
	FirstTimestamp int64 // milliseconds
	Compression    int8
	Transactional  bool
	Control        bool
	ProducerID     int64 // model.NoProducer for none
	ProducerEpoch  int16
	BaseSequence   int32 // -1 for none
}

// Plain is the Meta of a batch that no producer numbers.
func Plain(at time.Time) Meta {
	return Meta{FirstTimestamp: at.UnixMilli(), ProducerID: model.NoProducer, ProducerEpoch: -1, BaseSequence: -1}
}

// Builder puts records together into one batch with base offset 0.
type Builder struct {
	meta      Meta
	body      []byte
	n         int32
	lastDelta int32
	maxDelta  int64
}

// NewBuilder starts a batch.
func NewBuilder(m Meta) *Builder { return &Builder{meta: m, lastDelta: -1} }

// Len is the number of records so far, Size their uncompressed bytes.
func (b *Builder) Len() int { return int(b.n) }

// Size is the uncompressed size of the records so far.
func (b *Builder) Size() int { return len(b.body) }

// Add appends a record at the next offset delta.
func (b *Builder) Add(timestampDelta int64, key, value []byte, headers []Header) {
	raw := EncodeHeaders(nil, headers)
	b.AddRecord(Record{TimestampDelta: timestampDelta, OffsetDelta: b.lastDelta + 1, Key: key, Value: value, NumHeaders: len(headers), RawHeaders: raw})
}

// AddRecord appends a record as it is; offset deltas must rise.
func (b *Builder) AddRecord(r Record) {
	b.lastDelta = r.OffsetDelta
	b.maxDelta = max(b.maxDelta, r.TimestampDelta)
	b.n++
	b.body = appendRecord(b.body, r)
}

// Build finishes the batch: lastOffsetDelta is that of the last record unless a
// larger one is given (compaction keeps a batch's end).
func (b *Builder) Build(lastOffsetDelta int32) (model.Batch, error) {
	payload, err := Compress(b.meta.Compression, b.body)
	if err != nil {
		return nil, err
	}
	out := make([]byte, model.BatchHeaderSize, model.BatchHeaderSize+len(payload))
	m := b.meta
	attrs := int16(m.Compression)
	if m.Transactional {
		attrs |= 0x10
	}
	if m.Control {
		attrs |= 0x20
	}
	be := binary.BigEndian
	be.PutUint32(out[8:], uint32(model.BatchHeaderSize-12+len(payload)))
	out[16] = 2
	be.PutUint16(out[21:], uint16(attrs))
	be.PutUint32(out[23:], uint32(max(b.lastDelta, lastOffsetDelta)))
	be.PutUint64(out[27:], uint64(m.FirstTimestamp))
	be.PutUint64(out[35:], uint64(m.FirstTimestamp+b.maxDelta))
	be.PutUint64(out[43:], uint64(m.ProducerID))
	be.PutUint16(out[51:], uint16(m.ProducerEpoch))
	be.PutUint32(out[53:], uint32(m.BaseSequence))
	be.PutUint32(out[57:], uint32(b.n))
	batch := model.Batch(append(out, payload...))
	batch.SealCRC()
	return batch, nil
}

// EncodeHeaders appends headers in the record format, without their count.
func EncodeHeaders(dst []byte, headers []Header) []byte {
	for _, h := range headers {
		dst = appendBytes(dst, []byte(h.Key))
		dst = appendBytes(dst, h.Value)
	}
	return dst
}

func appendRecord(dst []byte, r Record) []byte {
	body := 1 + varintLen(r.TimestampDelta) + varintLen(int64(r.OffsetDelta)) +
		bytesLen(r.Key) + bytesLen(r.Value) + varintLen(int64(r.NumHeaders)) + len(r.RawHeaders)
	dst = binary.AppendVarint(dst, int64(body))
	dst = append(dst, byte(r.Attributes))
	dst = binary.AppendVarint(dst, r.TimestampDelta)
	dst = binary.AppendVarint(dst, int64(r.OffsetDelta))
	dst = appendBytes(dst, r.Key)
	dst = appendBytes(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(r.NumHeaders))
	return append(dst, r.RawHeaders...)
}

func appendBytes(dst, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(v)))
	return append(dst, v...)
}

func varintLen(n int64) int {
	u := uint64(n<<1) ^ uint64(n>>63)
	l := 1
	for ; u >= 0x80; u >>= 7 {
		l++
	}
	return l
}

func bytesLen(v []byte) int {
	if v == nil {
		return 1
	}
	return varintLen(int64(len(v))) + len(v)
}

// Marker is the content of a transaction's control record (KIP-98).
type Marker struct {
	Commit           bool
	CoordinatorEpoch int32
}

// MarkerBatch builds the control batch that ends a producer's transaction in one
// partition.
func MarkerBatch(at time.Time, producerID int64, epoch int16, m Marker) model.Batch {
	b := NewBuilder(Meta{
		FirstTimestamp: at.UnixMilli(), Transactional: true, Control: true,
		ProducerID: producerID, ProducerEpoch: epoch, BaseSequence: -1,
	})
	key := []byte{0, 0, 0, 0}
	if m.Commit {
		key[3] = 1
	}
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(m.CoordinatorEpoch))
	b.Add(0, key, value, nil)
	batch, err := b.Build(0)
	if err != nil {
		panic(err) // an uncompressed batch cannot fail to build
	}
	return batch
}

// ReadMarker reads a control batch. ok is false for control records that are not
// transaction markers (their type is neither 0 nor 1).
func ReadMarker(b model.Batch) (m Marker, ok bool, err error) {
	r, err := Open(b, 1<<20)
	if err != nil {
		return m, false, err
	}
	rec, found, err := r.Next()
	if err != nil || !found {
		return m, false, err
	}
	if len(rec.Key) < 4 {
		return m, false, errMalformed("control record key")
	}
	typ := binary.BigEndian.Uint16(rec.Key[2:])
	if len(rec.Value) >= 6 {
		m.CoordinatorEpoch = int32(binary.BigEndian.Uint32(rec.Value[2:]))
	}
	m.Commit = typ == 1
	return m, typ <= 1, nil
}
