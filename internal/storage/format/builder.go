package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
)

// Builder gathers the entries of one frame and encodes it without copying data.
// It is reused from frame to frame; the zero Builder is ready.
type Builder struct {
	refs []ref
	head []byte
	vecs [][]byte
	data int64
}

// ref is an entry and its place in append order.
type ref struct {
	e   *storage.Entry
	seq int
}

// Reset forgets the entries.
func (b *Builder) Reset() {
	clear(b.refs)
	clear(b.vecs)
	b.refs, b.vecs, b.data = b.refs[:0], b.vecs[:0], 0
}

// Add puts e into the frame; e must stay valid until the frame is written.
func (b *Builder) Add(e *storage.Entry) {
	b.refs = append(b.refs, ref{e, len(b.refs)})
	b.data += int64(len(e.Data))
}

// DataBytes is the data gathered so far; Entries the number of Add calls.
func (b *Builder) DataBytes() int64 { return b.data }

// Entries is the number of Add calls since Reset.
func (b *Builder) Entries() int { return len(b.refs) }

// EncodedMax is an upper bound of a frame's length with this many entries and
// bytes of data.
func EncodedMax(entries int, data int64) int64 {
	return Padded(FrameHeaderSize + int64(entries)*EntryHeaderSize + data)
}

var zeros [Align]byte

// Encode sorts the entries by partition (append order within one), joins entries
// that continue each other, sets every At for a frame at pos, and gives the
// buffers to write there. They are valid until the next call. Entries and
// Length of h are filled in.
func (b *Builder) Encode(h *FrameHeader, pos int64) ([][]byte, error) {
	slices.SortFunc(b.refs, func(x, y ref) int {
		if c := x.e.Part.Compare(y.e.Part); c != 0 {
			return c
		}
		return x.seq - y.seq
	})
	b.head = append(b.head[:0], zeros[:FrameHeaderSize]...)
	b.vecs = append(b.vecs[:0], nil)
	last := -1 // position of the last entry header in head
	h.Entries = 0
	for i, r := range b.refs {
		if len(r.e.Data) > 0 {
			b.vecs = append(b.vecs, r.e.Data)
		}
		if i > 0 && continues(b.refs[i-1].e, r.e) {
			extendEntry(b.head[last:], r.e)
			continue
		}
		last = len(b.head)
		b.head = appendEntry(b.head, r.e)
		h.Entries++
	}
	length := Padded(int64(len(b.head)) + b.data)
	if length > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrLength, length, MaxFrame)
	}
	h.Length = uint32(length)
	at := pos + int64(len(b.head))
	for _, r := range b.refs {
		r.e.At = storage.Location{File: h.File, Pos: at}
		at += int64(len(r.e.Data))
	}
	if pad := length - int64(len(b.head)) - b.data; pad > 0 {
		b.vecs = append(b.vecs, zeros[:pad])
	}
	b.sealHead(h)
	b.vecs[0] = b.head
	return b.vecs, nil
}

// sealHead writes the frame header into the head and computes both checksums.
func (b *Builder) sealHead(h *FrameHeader) {
	h.dataCRC = 0
	for _, v := range b.vecs[1:] {
		h.dataCRC = crc32.Update(h.dataCRC, model.Castagnoli, v)
	}
	binary.BigEndian.PutUint32(b.head[framePosMagic:], frameMagic)
	binary.BigEndian.PutUint32(b.head[framePosDataCRC:], h.dataCRC)
	binary.BigEndian.PutUint32(b.head[framePosEntries:], h.Entries)
	binary.BigEndian.PutUint64(b.head[framePosFile:], uint64(h.File))
	binary.BigEndian.PutUint64(b.head[framePosLSN:], uint64(h.LSN))
	binary.BigEndian.PutUint64(b.head[framePosDurable:], uint64(h.Durable))
	binary.BigEndian.PutUint32(b.head[framePosLength:], h.Length)
	binary.BigEndian.PutUint32(b.head[framePosFlags:], uint32(h.Flags))
	binary.BigEndian.PutUint32(b.head[framePosHeadCRC:], checksum(b.head[framePosDataCRC:]))
}
