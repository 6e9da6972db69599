package format

import (
	"encoding/binary"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
)

// Byte positions in an entry header.
const (
	entryPosKind   = 0
	entryPosIndex  = 4
	entryPosTopic  = 8
	entryPosBase   = 24
	entryPosLast   = 32
	entryPosTime   = 40
	entryPosLength = 48
)

func appendEntry(dst []byte, e *storage.Entry) []byte {
	var b [EntryHeaderSize]byte
	b[entryPosKind] = byte(e.Kind)
	binary.BigEndian.PutUint32(b[entryPosIndex:], uint32(e.Part.Index))
	copy(b[entryPosTopic:], e.Part.Topic[:])
	binary.BigEndian.PutUint64(b[entryPosBase:], uint64(e.Base))
	binary.BigEndian.PutUint64(b[entryPosLast:], uint64(e.Last))
	binary.BigEndian.PutUint64(b[entryPosTime:], uint64(e.MaxTimestamp))
	binary.BigEndian.PutUint32(b[entryPosLength:], uint32(len(e.Data)))
	return append(dst, b[:]...)
}

// continues reports whether e can share the header of the entry before it.
func continues(prev, e *storage.Entry) bool {
	return prev.Kind == storage.EntryBatches && e.Kind == storage.EntryBatches &&
		prev.Part == e.Part && prev.Last+1 == e.Base
}

// extendEntry lets the entry header in b cover e as well.
func extendEntry(b []byte, e *storage.Entry) {
	binary.BigEndian.PutUint64(b[entryPosLast:], uint64(e.Last))
	t := max(int64(binary.BigEndian.Uint64(b[entryPosTime:])), e.MaxTimestamp)
	binary.BigEndian.PutUint64(b[entryPosTime:], uint64(t))
	n := binary.BigEndian.Uint32(b[entryPosLength:])
	binary.BigEndian.PutUint32(b[entryPosLength:], n+uint32(len(e.Data)))
}

// Item is an entry read back. Its Data is nil where only heads are read.
type Item struct {
	storage.Entry
	Size int64 // of the data, in bytes
}

// decodeItems appends the entries of the checked head b of a frame at pos to dst.
func decodeItems(dst []Item, h *FrameHeader, b []byte, pos int64) ([]Item, error) {
	at := h.HeadSize()
	for i := range int64(h.Entries) {
		b := b[FrameHeaderSize+i*EntryHeaderSize:]
		it := Item{
			Entry: storage.Entry{
				Kind: storage.EntryKind(b[entryPosKind]),
				Part: model.PartitionID{
					Topic: model.TopicID(b[entryPosTopic : entryPosTopic+16]),
					Index: int32(binary.BigEndian.Uint32(b[entryPosIndex:])),
				},
				Base:         model.Offset(binary.BigEndian.Uint64(b[entryPosBase:])),
				Last:         model.Offset(binary.BigEndian.Uint64(b[entryPosLast:])),
				MaxTimestamp: int64(binary.BigEndian.Uint64(b[entryPosTime:])),
				At:           storage.Location{File: h.File, Pos: pos + at},
			},
			Size: int64(binary.BigEndian.Uint32(b[entryPosLength:])),
		}
		at += it.Size
		if at > int64(h.Length) || b[1]|b[2]|b[3] != 0 {
			return dst, ErrEntry
		}
		dst = append(dst, it)
	}
	return dst, nil
}
