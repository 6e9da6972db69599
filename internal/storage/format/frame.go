package format

import (
	"encoding/binary"
	"errors"

	"github.com/daybook-mq/daybook/internal/model"
)

// Flags of a frame.
type Flags uint32

// FlagLast marks the last frame of a file that was finished in good order;
// FlagSegment each frame of a segment, should its file header be lost.
const (
	FlagLast    Flags = 1
	FlagSegment Flags = 2
)

// FrameHeader opens a frame. The entry headers follow it, then the data of all
// entries in order, then zeros up to a multiple of Align.
type FrameHeader struct {
	File model.FileID
	LSN  model.LSN
	// Durable is the last LSN that was known durable when the frame was written.
	// A frame with no entries (a mark) is written to say only this.
	Durable model.LSN
	Length  uint32 // of the whole frame, padding included
	Entries uint32
	Flags   Flags

	dataCRC uint32
}

// HeadSize is the size of the frame header with its entry headers.
func (h *FrameHeader) HeadSize() int64 {
	return FrameHeaderSize + int64(h.Entries)*EntryHeaderSize
}

// Byte positions in a frame header. The head checksum covers all of the head
// after itself, and so the data checksum too.
const (
	framePosMagic   = 0
	framePosHeadCRC = 4
	framePosDataCRC = 8
	framePosEntries = 12
	framePosFile    = 16
	framePosLSN     = 24
	framePosDurable = 32
	framePosLength  = 40
	framePosFlags   = 44

	frameMagic uint32 = 0xDB0F4A3E
)

// Reasons for which bytes are not taken as a frame.
var (
	ErrBlank    = errors.New("no frame: zeros")
	ErrStale    = errors.New("no frame: left from the file's earlier life")
	ErrMagic    = errors.New("no frame: wrong magic")
	ErrLength   = errors.New("frame length out of bounds")
	ErrShort    = errors.New("frame reaches beyond the file's end")
	ErrHeadCRC  = errors.New("frame head does not match its checksum")
	ErrDataCRC  = errors.New("frame data does not match its checksum")
	ErrEntry    = errors.New("entry header is not consistent")
	ErrPadding  = errors.New("frame padding is not zeros")
	ErrSequence = errors.New("frame is out of sequence")
	ErrUnread   = errors.New("the disk did not give the bytes")
)

// decodeFrameHeader reads the fixed part, without checksum; it bounds the
// lengths, so that HeadSize and Length may be used to read on.
func decodeFrameHeader(b []byte) (FrameHeader, error) {
	if len(b) < FrameHeaderSize {
		return FrameHeader{}, ErrShort
	}
	if binary.BigEndian.Uint32(b[framePosMagic:]) != frameMagic {
		if isZero(b[:FrameHeaderSize]) {
			return FrameHeader{}, ErrBlank
		}
		return FrameHeader{}, ErrMagic
	}
	h := FrameHeader{
		File:    model.FileID(binary.BigEndian.Uint64(b[framePosFile:])),
		LSN:     model.LSN(binary.BigEndian.Uint64(b[framePosLSN:])),
		Durable: model.LSN(binary.BigEndian.Uint64(b[framePosDurable:])),
		Length:  binary.BigEndian.Uint32(b[framePosLength:]),
		Entries: binary.BigEndian.Uint32(b[framePosEntries:]),
		Flags:   Flags(binary.BigEndian.Uint32(b[framePosFlags:])),
		dataCRC: binary.BigEndian.Uint32(b[framePosDataCRC:]),
	}
	if h.Length == 0 || h.Length > MaxFrame || h.Length%Align != 0 || h.HeadSize() > int64(h.Length) {
		return h, ErrLength
	}
	return h, nil
}

// Frame is a frame read back.
type Frame struct {
	FrameHeader
	Pos   int64 // of the frame, in its file
	Items []Item
}

// DecodeHead reads the head of a frame that starts at pos of its file: header
// and entry headers, no data. f.Items is reused.
func (f *Frame) DecodeHead(b []byte, pos int64) (err error) {
	f.Pos, f.Items = pos, f.Items[:0]
	if f.FrameHeader, err = decodeFrameHeader(b); err != nil {
		return err
	}
	if int64(len(b)) < f.HeadSize() {
		return ErrShort
	}
	if checksum(b[framePosDataCRC:f.HeadSize()]) != binary.BigEndian.Uint32(b[framePosHeadCRC:]) {
		return ErrHeadCRC
	}
	f.Items, err = decodeItems(f.Items, &f.FrameHeader, b, pos)
	return err
}

// Decode reads a whole frame that starts at pos of its file. The items' Data
// points into b. With ErrDataCRC the head is right and Items say what was hit.
func (f *Frame) Decode(b []byte, pos int64) error {
	if err := f.DecodeHead(b, pos); err != nil {
		return err
	}
	if len(b) < int(f.Length) {
		return ErrShort
	}
	if checksum(b[f.HeadSize():f.Length]) != f.dataCRC {
		return ErrDataCRC
	}
	end := f.HeadSize()
	for i := range f.Items {
		it := &f.Items[i]
		it.Data = b[end : end+it.Size : end+it.Size]
		end += it.Size
	}
	if !isZero(b[end:f.Length]) {
		return ErrPadding
	}
	return nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
