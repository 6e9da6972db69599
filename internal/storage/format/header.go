package format

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
)

// Kind is what a data file was written as. A journal file that was adopted as a
// segment keeps its kind.
type Kind uint16

// The kinds of data file.
const (
	KindJournal Kind = 1
	KindSegment Kind = 2
)

// String is for logs and tools.
func (k Kind) String() string {
	switch k {
	case KindJournal:
		return "journal"
	case KindSegment:
		return "segment"
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// FileHeader opens a data file.
type FileHeader struct {
	Version uint16
	Kind    Kind
	ID      model.FileID
	// FirstLSN is the LSN of the first frame; a segment counts its frames from 1.
	FirstLSN model.LSN
	// Incarnation is the start of the broker that wrote the file.
	Incarnation uint64
}

var fileMagic = [8]byte{'D', 'A', 'Y', 'B', 'O', 'O', 'K', '\n'}

// Reasons for which a file header is refused.
var (
	ErrNotDataFile = errors.New("no Daybook data file header")
	ErrHeaderCRC   = errors.New("file header does not match its checksum")
	ErrVersion     = errors.New("file was written by a newer Daybook")
)

const headerCRCPos = HeaderSize - 4

// Encode gives the header block. Version 0 means Version.
func (h FileHeader) Encode() []byte {
	b := make([]byte, HeaderSize)
	copy(b, fileMagic[:])
	if h.Version == 0 {
		h.Version = Version
	}
	binary.BigEndian.PutUint16(b[8:], h.Version)
	binary.BigEndian.PutUint16(b[10:], uint16(h.Kind))
	binary.BigEndian.PutUint64(b[16:], uint64(h.ID))
	binary.BigEndian.PutUint64(b[24:], uint64(h.FirstLSN))
	binary.BigEndian.PutUint64(b[32:], h.Incarnation)
	binary.BigEndian.PutUint32(b[headerCRCPos:], checksum(b[:headerCRCPos]))
	return b
}

// DecodeFileHeader reads a header block of at least HeaderSize bytes. Of a newer
// version's header only Version is given, with ErrVersion.
func DecodeFileHeader(b []byte) (FileHeader, error) {
	if len(b) < HeaderSize || [8]byte(b[:8]) != fileMagic {
		return FileHeader{}, ErrNotDataFile
	}
	b = b[:HeaderSize]
	if checksum(b[:headerCRCPos]) != binary.BigEndian.Uint32(b[headerCRCPos:]) {
		return FileHeader{}, ErrHeaderCRC
	}
	h := FileHeader{
		Version:     binary.BigEndian.Uint16(b[8:]),
		Kind:        Kind(binary.BigEndian.Uint16(b[10:])),
		ID:          model.FileID(binary.BigEndian.Uint64(b[16:])),
		FirstLSN:    model.LSN(binary.BigEndian.Uint64(b[24:])),
		Incarnation: binary.BigEndian.Uint64(b[32:]),
	}
	if h.Version > Version || h.Version == 0 {
		return FileHeader{Version: h.Version}, ErrVersion
	}
	return h, nil
}
