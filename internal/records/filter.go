package records

import (
	"encoding/binary"

	"github.com/daybook-mq/daybook/internal/model"
)

// Filter gives a copy of b with only the records that keep accepts, uncompressed.
// Offsets, timestamps, producer and the batch's end stay as they are, as after
// compaction; a batch may end up empty. The records section may have at most
// limit bytes in plain (0 for DefaultLimit).
func Filter(b model.Batch, limit int, keep func(r Record) bool) (model.Batch, error) {
	plain, err := Decompress(b.Compression(), b.Payload(), limit)
	if err != nil {
		return nil, err
	}
	out := append(make(model.Batch, 0, len(b)), b[:model.BatchHeaderSize]...)
	kept := uint32(0)
	for r := (Reader{plain}); ; {
		before := r.buf
		rec, ok, err := r.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if keep(rec) {
			out = append(out, before[:len(before)-len(r.buf)]...)
			kept++
		}
	}
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-12))
	binary.BigEndian.PutUint16(out[21:], uint16(b.Attributes()&^0x07))
	binary.BigEndian.PutUint32(out[57:], kept)
	out.SealCRC()
	return out, nil
}
