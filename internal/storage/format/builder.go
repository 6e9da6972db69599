package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
)

// Builder gathers the entries of one frame and encodes it without copying data.
// It is reused from frame to frame; the zero Builder is ready.
type Builder struct {
	refs  []ref
	runs  []run
	index map[model.PartitionID]int32 // to runs
	head  []byte
	vecs  [][]byte
	data  int64
}

// ref is an entry and the place in refs of the next one of its partition; -1 at the last.
type ref struct {
	e    *storage.Entry
	next int32
}

// run is one partition's entries: places in refs.
type run struct{ first, last int32 }

// Reset forgets the entries.
func (b *Builder) Reset() {
	clear(b.refs)
	clear(b.vecs)
	clear(b.index)
	b.refs, b.runs, b.vecs, b.data = b.refs[:0], b.runs[:0], b.vecs[:0], 0
}

// Add puts e into the frame; e must stay valid until the frame is written.
func (b *Builder) Add(e *storage.Entry) {
	n := int32(len(b.refs))
	b.refs = append(b.refs, ref{e, -1})
	b.data += int64(len(e.Data))
	// Often the entry follows its partition's last one, and no look-up is needed.
	r := int32(len(b.runs)) - 1
	if r < 0 || b.refs[b.runs[r].last].e.Part != e.Part {
		if b.index == nil {
			b.index = make(map[model.PartitionID]int32)
		}
		var known bool
		if r, known = b.index[e.Part]; !known {
			b.index[e.Part] = int32(len(b.runs))
			b.runs = append(b.runs, run{n, n})
			return
		}
	}
	b.refs[b.runs[r].last].next = n
	b.runs[r].last = n
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

// Encode brings each partition's entries together (partitions in the order of
// their first entry), joins entries that continue each other, sets every At for
// a frame at pos, and gives the buffers to write there. They are valid until the
// next call. Entries and Length of h are filled in; a larger Length that h came
// with stays, and the frame is padded to it.
func (b *Builder) Encode(h *FrameHeader, pos int64) ([][]byte, error) {
	b.head = append(b.head[:0], zeros[:FrameHeaderSize]...)
	b.vecs = append(b.vecs[:0], nil)
	h.Entries = 0
	for _, run := range b.runs {
		var prev *storage.Entry
		last := 0 // position of the run's last entry header in head
		for i := run.first; i >= 0; i = b.refs[i].next {
			e := b.refs[i].e
			if len(e.Data) > 0 {
				b.vecs = append(b.vecs, e.Data)
			}
			if prev != nil && continues(prev, e) {
				extendEntry(b.head[last:], e)
			} else {
				last = len(b.head)
				b.head = appendEntry(b.head, e)
				h.Entries++
			}
			prev = e
		}
	}
	length := max(Padded(int64(len(b.head))+b.data), int64(h.Length))
	if length > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrLength, length, MaxFrame)
	}
	h.Length = uint32(length)
	at := pos + int64(len(b.head))
	for _, run := range b.runs {
		for i := run.first; i >= 0; i = b.refs[i].next {
			e := b.refs[i].e
			e.At = storage.Location{File: h.File, Pos: at}
			at += int64(len(e.Data))
		}
	}
	for pad := length - int64(len(b.head)) - b.data; pad > 0; pad -= Align {
		b.vecs = append(b.vecs, zeros[:min(pad, Align)])
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
