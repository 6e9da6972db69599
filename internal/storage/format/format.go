// Package format is the byte layout of Daybook's one kind of data file: a header
// block, then frames; a frame holds entries. Journal files and segments are the
// same bytes, so that a sealed journal file can stay as a segment.
//
// It owns encoding, decoding, the Scanner that reads a file and the Writer that
// makes a segment. It does not decide what a bad frame means (journal does) nor
// which partitions go where (partlog does). docs/formats/journal.md shows every byte.
//
// What must hold:
//   - all integers are big-endian; every byte of a frame is under a checksum;
//   - a frame starts at a multiple of Align, its length is a multiple of Align,
//     so no later write touches a sector that holds an older frame;
//   - a frame names its file and its LSN: bytes left over from an earlier life of
//     a recycled file, or moved within it, are not taken for its frames;
//   - LSNs within a file go up by one from FileHeader.FirstLSN;
//   - in one frame the data of one partition is contiguous.
package format

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
)

const (
	// Version is the layout version that this code writes and the newest it reads.
	Version = 1
	// HeaderSize is the file header block; the first frame follows it.
	HeaderSize = 4096
	// Align is what frames start at and are padded to: the smallest sector.
	Align = 512
	// FrameHeaderSize and EntryHeaderSize are encoded sizes in bytes.
	FrameHeaderSize = 48
	EntryHeaderSize = 52
	// MaxFrame bounds a frame's length, padding included.
	MaxFrame = 64 << 20
	// MarkSize is the size of a frame without entries.
	MarkSize = Align
)

// Extensions of the files in a data directory; the base name is the file id.
const (
	ExtData    = ".data"    // a journal file or segment in use
	ExtSpare   = ".spare"   // a prepared file that holds nothing of worth
	ExtDamaged = ".damaged" // set aside because part of it cannot be read
	ExtIndex   = ".index"   // the index of a data file; partlog's
)

// LockName is the file whose lock says that a process uses the directory.
const LockName = "LOCK"

// FileName is the base name of a data file: the id in 16 hexadecimal digits, and ext.
func FileName(id model.FileID, ext string) string { return fmt.Sprintf("%016x%s", uint64(id), ext) }

// ParseFileName reads FileName's form; ok is false for any other name.
func ParseFileName(name string) (id model.FileID, ext string, ok bool) {
	base, rest, found := strings.Cut(name, ".")
	if !found || len(base) != 16 || base != strings.ToLower(base) {
		return 0, "", false
	}
	n, err := strconv.ParseUint(base, 16, 64)
	if err != nil {
		return 0, "", false
	}
	return model.FileID(n), "." + rest, true
}

// Padded rounds n up to a multiple of Align.
func Padded(n int64) int64 { return (n + Align - 1) &^ (Align - 1) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, model.Castagnoli) }
