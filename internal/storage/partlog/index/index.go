// Package index is the side file of a data file: where each partition's batches
// lie in it. It owns the byte layout (docs/formats/index.md), building, reading
// and checking. It does not open data files and does not decide what is indexed.
//
// The nouns: a block is one entry of the data file (whole batches, contiguous,
// of one partition); a run is a series of blocks of one partition without a gap
// in their offsets. A block's offsets say what range it covers, which after
// compaction may be more than its batches hold: runs tile a log without holes.
//
// An index can be rebuilt from its data file at any time, so damage to it is
// reported, never guessed around.
package index

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
)

const (
	magic      = "DBINDEX1"
	headerSize = 32
	blockSize  = 40
	runSize    = 64
	footerSize = 32

	// maxRuns bounds what a summary may claim before anything is allocated.
	maxRuns = 1 << 24
)

// Block is one entry of a data file.
type Block struct {
	Pos          int64 // of the first batch, in the data file
	Base, Last   model.Offset
	MaxTimestamp int64  // milliseconds
	Len          uint32 // bytes of batches
	CRC          uint32 // CRC-32C of those bytes
}

// Run is what the summary tells about one series of blocks.
type Run struct {
	Part         model.PartitionID
	Base, Last   model.Offset
	MaxTimestamp int64
	Bytes        int64 // sum of the blocks' lengths
	Section      Section
}

// Section is where a run's blocks lie in the index file.
type Section struct {
	Pos    int64
	Blocks uint32
	CRC    uint32
}

// Summary is an index without its block lists.
type Summary struct {
	File     model.FileID
	DataSize int64 // bytes of the data file that the index speaks of
	Runs     []Run // by partition, then base offset
}

// Builder gathers blocks, in offset order within each partition.
type Builder struct {
	parts  map[model.PartitionID][][]Block // runs
	count  int
	broken bool
}

// Add notes one block. Within a partition, blocks come in offset order. A block
// that does not follow the one before begins a new run.
func (b *Builder) Add(p model.PartitionID, blk Block) {
	if b.parts == nil {
		b.parts = make(map[model.PartitionID][][]Block)
	}
	runs := b.parts[p]
	n := len(runs) - 1
	if n < 0 || b.broken || runs[n][len(runs[n])-1].Last+1 != blk.Base {
		runs = append(runs, nil)
		n++
	}
	runs[n] = append(runs[n], blk)
	b.parts[p], b.broken = runs, false
	b.count++
}

// Break makes the next block begin a new run.
func (b *Builder) Break() { b.broken = true }

// Len is the number of blocks added.
func (b *Builder) Len() int { return b.count }

// Encode gives the index file's bytes and the summary as Load would read it.
func (b *Builder) Encode(file model.FileID, dataSize int64) ([]byte, Summary) {
	s := Summary{File: file, DataSize: dataSize}
	order := make([]model.PartitionID, 0, len(b.parts))
	for p := range b.parts {
		order = append(order, p)
	}
	slices.SortFunc(order, model.PartitionID.Compare)

	buf := make([]byte, headerSize, headerSize+b.count*blockSize+len(order)*runSize+footerSize)
	copy(buf, magic)
	binary.BigEndian.PutUint64(buf[8:], uint64(file))
	binary.BigEndian.PutUint64(buf[16:], uint64(dataSize))
	binary.BigEndian.PutUint32(buf[28:], crc32.Checksum(buf[:28], model.Castagnoli))

	for _, p := range order {
		for _, blocks := range b.parts[p] {
			r := Run{
				Part: p, Base: blocks[0].Base, Last: blocks[len(blocks)-1].Last, MaxTimestamp: -1,
				Section: Section{Pos: int64(len(buf)), Blocks: uint32(len(blocks))},
			}
			for _, blk := range blocks {
				r.Bytes += int64(blk.Len)
				r.MaxTimestamp = max(r.MaxTimestamp, blk.MaxTimestamp)
				buf = appendBlock(buf, blk)
			}
			r.Section.CRC = crc32.Checksum(buf[r.Section.Pos:], model.Castagnoli)
			s.Runs = append(s.Runs, r)
		}
	}
	summary := len(buf)
	for _, r := range s.Runs {
		buf = appendRun(buf, r)
	}
	foot := len(buf)
	buf = binary.BigEndian.AppendUint64(buf, uint64(summary))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(s.Runs)))
	buf = binary.BigEndian.AppendUint32(buf, crc32.Checksum(buf[summary:foot], model.Castagnoli))
	buf = append(buf, magic...)
	buf = binary.BigEndian.AppendUint32(buf, 0)
	buf = binary.BigEndian.AppendUint32(buf, crc32.Checksum(buf[foot:], model.Castagnoli))
	return buf, s
}

func appendBlock(buf []byte, b Block) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.Pos))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.Base))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.Last))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.MaxTimestamp))
	buf = binary.BigEndian.AppendUint32(buf, b.Len)
	return binary.BigEndian.AppendUint32(buf, b.CRC)
}

func appendRun(buf []byte, r Run) []byte {
	buf = append(buf, r.Part.Topic[:]...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(r.Part.Index))
	buf = binary.BigEndian.AppendUint32(buf, r.Section.Blocks)
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Base))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Last))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.MaxTimestamp))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Bytes))
	// The sections follow each other from the header on, so their positions
	// need not be stored.
	buf = binary.BigEndian.AppendUint32(buf, r.Section.CRC)
	return binary.BigEndian.AppendUint32(buf, 0)
}

// Load reads header, summary and footer of an index file of size bytes. An
// error is ClassCorrupt when the bytes are damaged, else the reader's.
func Load(r io.ReaderAt, size int64) (Summary, error) {
	if size < headerSize+footerSize {
		return Summary{}, corrupt("has %d bytes, less than header and footer", size)
	}
	var head [headerSize]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return Summary{}, fmt.Errorf("index header: %w", err)
	}
	if string(head[:8]) != magic || binary.BigEndian.Uint32(head[28:]) != crc32.Checksum(head[:28], model.Castagnoli) {
		return Summary{}, corrupt("header is damaged")
	}
	s := Summary{
		File:     model.FileID(binary.BigEndian.Uint64(head[8:])),
		DataSize: int64(binary.BigEndian.Uint64(head[16:])),
	}
	var foot [footerSize]byte
	if _, err := r.ReadAt(foot[:], size-footerSize); err != nil {
		return Summary{}, fmt.Errorf("index footer: %w", err)
	}
	if string(foot[16:24]) != magic || binary.BigEndian.Uint32(foot[28:]) != crc32.Checksum(foot[:28], model.Castagnoli) {
		return Summary{}, corrupt("footer is damaged")
	}
	at := int64(binary.BigEndian.Uint64(foot[:]))
	n := int64(binary.BigEndian.Uint32(foot[8:]))
	if n > maxRuns || at < headerSize || at+n*runSize != size-footerSize {
		return Summary{}, corrupt("footer places %d runs at %d in %d bytes", n, at, size)
	}
	buf := make([]byte, n*runSize)
	if _, err := r.ReadAt(buf, at); err != nil {
		return Summary{}, fmt.Errorf("index summary: %w", err)
	}
	if crc32.Checksum(buf, model.Castagnoli) != binary.BigEndian.Uint32(foot[12:]) {
		return Summary{}, corrupt("summary is damaged")
	}
	s.Runs = make([]Run, n)
	next := int64(headerSize)
	for i := range s.Runs {
		s.Runs[i] = decodeRun(buf[i*runSize:], next)
		next += int64(s.Runs[i].Section.Blocks) * blockSize
		if i > 0 && compareRuns(s.Runs[i-1], s.Runs[i]) >= 0 {
			return Summary{}, corrupt("run %d is out of order", i)
		}
		if r := s.Runs[i]; r.Section.Blocks == 0 || r.Base < 0 || r.Last < r.Base || r.Bytes < 0 {
			return Summary{}, corrupt("run %d is not a range", i)
		}
	}
	if next != at {
		return Summary{}, corrupt("block sections end at %d, the summary begins at %d", next, at)
	}
	return s, nil
}

func compareRuns(a, b Run) int {
	if c := a.Part.Compare(b.Part); c != 0 {
		return c
	}
	return cmp.Compare(a.Base, b.Base)
}

func decodeRun(buf []byte, section int64) Run {
	var r Run
	copy(r.Part.Topic[:], buf)
	r.Part.Index = int32(binary.BigEndian.Uint32(buf[16:]))
	r.Section = Section{Pos: section, Blocks: binary.BigEndian.Uint32(buf[20:]), CRC: binary.BigEndian.Uint32(buf[56:])}
	r.Base = model.Offset(binary.BigEndian.Uint64(buf[24:]))
	r.Last = model.Offset(binary.BigEndian.Uint64(buf[32:]))
	r.MaxTimestamp = int64(binary.BigEndian.Uint64(buf[40:]))
	r.Bytes = int64(binary.BigEndian.Uint64(buf[48:]))
	return r
}

// LoadBlocks reads one run's block list, which Load's checks have bounded.
func LoadBlocks(r io.ReaderAt, sec Section) ([]Block, error) {
	buf := make([]byte, int64(sec.Blocks)*blockSize)
	if _, err := r.ReadAt(buf, sec.Pos); err != nil {
		return nil, fmt.Errorf("index blocks at %d: %w", sec.Pos, err)
	}
	if crc32.Checksum(buf, model.Castagnoli) != sec.CRC {
		return nil, corrupt("block list at %d is damaged", sec.Pos)
	}
	blocks := make([]Block, sec.Blocks)
	for i := range blocks {
		b := buf[i*blockSize:]
		blocks[i] = Block{
			Pos:          int64(binary.BigEndian.Uint64(b)),
			Base:         model.Offset(binary.BigEndian.Uint64(b[8:])),
			Last:         model.Offset(binary.BigEndian.Uint64(b[16:])),
			MaxTimestamp: int64(binary.BigEndian.Uint64(b[24:])),
			Len:          binary.BigEndian.Uint32(b[32:]),
			CRC:          binary.BigEndian.Uint32(b[36:]),
		}
	}
	return blocks, nil
}

func corrupt(format string, args ...any) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "index", Detail: fmt.Sprintf(format, args...)}
}
