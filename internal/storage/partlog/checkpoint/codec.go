// Package checkpoint is the store's table of contents: which files are live, from
// which LSN on the journal must be replayed, and each partition's log start and
// snapshot. It owns the byte layout (docs/formats/checkpoint.md) and the two twin
// files, each whole in itself, so that damage to one is healed from the other.
// It does not decide when a checkpoint is taken.
package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/daybook-mq/daybook/internal/model"
)

const (
	magic         = "DBCHECK1"
	headerSize    = 64
	posHeaderCRC  = headerSize - 4
	segmentSize   = 24
	partitionSize = 56
)

// State is what a checkpoint says.
type State struct {
	Seq         uint64    // counts checkpoints; the higher of two twins is the newer
	Incarnation int32     // starts of this data directory
	From        model.LSN // replay the journal from here
	Segments    []Segment
	Partitions  []Partition
}

// Segment is a live data file that the journal no longer owns.
type Segment struct {
	File    model.FileID
	Size    int64
	Adopted bool // it was a journal file, which stays as it is
}

// Partition is what must be known of a log besides its batches. A partition that
// occurs in a segment but not here has been dropped.
type Partition struct {
	ID       model.PartitionID
	Start    model.Offset
	End      model.Offset // one past the last offset then; to notice what is missing
	Clean    model.Offset // compaction has been through below this
	UpTo     model.Offset // the snapshot covers what is below
	Snapshot []byte
}

// Encode gives the bytes of one twin.
func Encode(s State) []byte {
	n := headerSize + len(s.Segments)*segmentSize + len(s.Partitions)*partitionSize
	for _, p := range s.Partitions {
		n += len(p.Snapshot)
	}
	buf := make([]byte, headerSize, n)
	for _, seg := range s.Segments {
		buf = binary.BigEndian.AppendUint64(buf, uint64(seg.File))
		buf = binary.BigEndian.AppendUint64(buf, uint64(seg.Size))
		var flags uint64
		if seg.Adopted {
			flags = 1
		}
		buf = binary.BigEndian.AppendUint64(buf, flags)
	}
	for _, p := range s.Partitions {
		buf = append(buf, p.ID.Topic[:]...)
		buf = binary.BigEndian.AppendUint32(buf, uint32(p.ID.Index))
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(p.Snapshot)))
		buf = binary.BigEndian.AppendUint64(buf, uint64(p.Start))
		buf = binary.BigEndian.AppendUint64(buf, uint64(p.End))
		buf = binary.BigEndian.AppendUint64(buf, uint64(p.Clean))
		buf = binary.BigEndian.AppendUint64(buf, uint64(p.UpTo))
		buf = append(buf, p.Snapshot...)
	}
	h := buf[:headerSize]
	copy(h, magic)
	binary.BigEndian.PutUint64(h[8:], s.Seq)
	binary.BigEndian.PutUint32(h[16:], uint32(s.Incarnation))
	binary.BigEndian.PutUint64(h[24:], uint64(s.From))
	binary.BigEndian.PutUint32(h[32:], uint32(len(s.Segments)))
	binary.BigEndian.PutUint32(h[36:], uint32(len(s.Partitions)))
	binary.BigEndian.PutUint64(h[40:], uint64(len(buf)-headerSize))
	binary.BigEndian.PutUint32(h[48:], crc32.Checksum(buf[headerSize:], model.Castagnoli))
	binary.BigEndian.PutUint32(h[posHeaderCRC:], crc32.Checksum(h[:posHeaderCRC], model.Castagnoli))
	return buf
}

// Decode reads one twin. Snapshots point into buf. Errors are ClassCorrupt.
func Decode(buf []byte) (State, error) {
	if len(buf) < headerSize {
		return State{}, corrupt("has %d bytes, less than its header", len(buf))
	}
	h, body := buf[:headerSize], buf[headerSize:]
	if string(h[:8]) != magic || binary.BigEndian.Uint32(h[posHeaderCRC:]) != crc32.Checksum(h[:posHeaderCRC], model.Castagnoli) {
		return State{}, corrupt("header is damaged")
	}
	if binary.BigEndian.Uint64(h[40:]) != uint64(len(body)) {
		return State{}, corrupt("has %d bytes after the header, which says %d", len(body), binary.BigEndian.Uint64(h[40:]))
	}
	if binary.BigEndian.Uint32(h[48:]) != crc32.Checksum(body, model.Castagnoli) {
		return State{}, corrupt("content is damaged")
	}
	s := State{
		Seq:         binary.BigEndian.Uint64(h[8:]),
		Incarnation: int32(binary.BigEndian.Uint32(h[16:])),
		From:        model.LSN(binary.BigEndian.Uint64(h[24:])),
	}
	segments := int(binary.BigEndian.Uint32(h[32:]))
	partitions := int(binary.BigEndian.Uint32(h[36:]))
	if segments > len(body)/segmentSize || partitions > len(body)/partitionSize {
		return State{}, corrupt("counts %d segments and %d partitions in %d bytes", segments, partitions, len(body))
	}
	s.Segments = make([]Segment, segments)
	for i := range s.Segments {
		if len(body) < segmentSize {
			return State{}, corrupt("segment %d is cut off", i)
		}
		s.Segments[i] = Segment{
			File:    model.FileID(binary.BigEndian.Uint64(body)),
			Size:    int64(binary.BigEndian.Uint64(body[8:])),
			Adopted: binary.BigEndian.Uint64(body[16:])&1 != 0,
		}
		body = body[segmentSize:]
	}
	s.Partitions = make([]Partition, partitions)
	for i := range s.Partitions {
		var err error
		if s.Partitions[i], body, err = decodePartition(body); err != nil {
			return State{}, err
		}
	}
	if len(body) != 0 {
		return State{}, corrupt("has %d bytes after the last partition", len(body))
	}
	return s, nil
}

func decodePartition(body []byte) (Partition, []byte, error) {
	if len(body) < partitionSize {
		return Partition{}, nil, corrupt("a partition is cut off")
	}
	var p Partition
	copy(p.ID.Topic[:], body)
	p.ID.Index = int32(binary.BigEndian.Uint32(body[16:]))
	n := uint64(binary.BigEndian.Uint32(body[20:]))
	p.Start = model.Offset(binary.BigEndian.Uint64(body[24:]))
	p.End = model.Offset(binary.BigEndian.Uint64(body[32:]))
	p.Clean = model.Offset(binary.BigEndian.Uint64(body[40:]))
	p.UpTo = model.Offset(binary.BigEndian.Uint64(body[48:]))
	body = body[partitionSize:]
	if n > uint64(len(body)) {
		return Partition{}, nil, corrupt("snapshot of %s is cut off", p.ID)
	}
	if p.Start < 0 || p.End < p.Start || p.Clean < 0 || p.UpTo < 0 {
		return Partition{}, nil, corrupt("%s has offsets that cannot be", p.ID)
	}
	if n > 0 {
		p.Snapshot = body[:n:n]
	}
	return p, body[n:], nil
}

func corrupt(format string, args ...any) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "checkpoint", Detail: fmt.Sprintf(format, args...)}
}
