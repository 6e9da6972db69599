package records

import (
	"encoding/binary"

	"github.com/daybook-mq/daybook/internal/model"
)

// Recompress gives a copy of b whose records are compressed with another codec.
// The records section in plain may have at most limit bytes.
func Recompress(b model.Batch, codec int8, limit int) (model.Batch, error) {
	plain, err := Decompress(b.Compression(), b.Payload(), limit)
	if err != nil {
		return nil, err
	}
	payload, err := Compress(codec, plain)
	if err != nil {
		return nil, err
	}
	out := make(model.Batch, 0, model.BatchHeaderSize+len(payload))
	out = append(append(out, b[:model.BatchHeaderSize]...), payload...)
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-12))
	attrs := b.Attributes()&^0x07 | int16(codec)
	binary.BigEndian.PutUint16(out[21:], uint16(attrs))
	out.SealCRC()
	return out, nil
}
