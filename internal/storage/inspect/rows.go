package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/format"
)

// Row is one line of a dump: JSON by its fields, text for a person by Text.
type Row interface{ Text() string }

// FileRow opens the rows of a file.
type FileRow struct {
	Type string `json:"type"`
	File
	Error string `json:"error,omitempty"`
}

// FrameRow is a frame.
type FrameRow struct {
	Type    string    `json:"type"`
	File    string    `json:"file"`
	Pos     int64     `json:"position"`
	LSN     model.LSN `json:"lsn"`
	Durable model.LSN `json:"durable_lsn"`
	Length  uint32    `json:"length"`
	Entries uint32    `json:"entries"`
	Last    bool      `json:"last,omitempty"`
}

// EntryRow is an entry of the frame before it.
type EntryRow struct {
	Type         string       `json:"type"`
	File         string       `json:"file"`
	Pos          int64        `json:"position"`
	LSN          model.LSN    `json:"lsn"`
	Kind         string       `json:"kind"`
	Partition    string       `json:"partition"`
	Base         model.Offset `json:"base_offset"`
	Last         model.Offset `json:"last_offset"`
	MaxTimestamp int64        `json:"max_timestamp"`
	Size         int64        `json:"size"`
}

// BatchRow is a record batch of the entry before it.
type BatchRow struct {
	Type          string       `json:"type"`
	File          string       `json:"file"`
	Pos           int64        `json:"position"`
	Partition     string       `json:"partition"`
	Base          model.Offset `json:"base_offset"`
	Last          model.Offset `json:"last_offset"`
	Records       int32        `json:"records"`
	Size          int          `json:"size"`
	Codec         string       `json:"codec"`
	MaxTimestamp  int64        `json:"max_timestamp"`
	LeaderEpoch   int32        `json:"leader_epoch"`
	ProducerID    int64        `json:"producer_id"`
	ProducerEpoch int16        `json:"producer_epoch"`
	BaseSequence  int32        `json:"base_sequence"`
	Transactional bool         `json:"transactional"`
	Control       bool         `json:"control"`
	Valid         bool         `json:"crc_valid"`
}

// RecordRow is a record of the batch before it. Keys and values are bytes
// (base64 in JSON); nil is null.
type RecordRow struct {
	Type      string       `json:"type"`
	Partition string       `json:"partition"`
	Offset    model.Offset `json:"offset"`
	Timestamp int64        `json:"timestamp"`
	Key       []byte       `json:"key"`
	Value     []byte       `json:"value"`
	Headers   int          `json:"headers"`
}

// BadRow is a place where no good frame, batch or record is.
type BadRow struct {
	Type   string `json:"type"`
	File   string `json:"file"`
	Pos    int64  `json:"position"`
	Reason string `json:"reason"`
	// Tail says that nothing good follows in the file: most often it is just
	// the end of what was written. Verify tells.
	Tail bool `json:"tail"`
}

// Text is "file NAME  role ...".
func (r FileRow) Text() string {
	s := fmt.Sprintf("file %s  %s  %d bytes", r.Name, r.Role, r.Size)
	if r.Kind != "" {
		s += fmt.Sprintf("  first LSN %d  incarnation %d", r.FirstLSN, r.Incarnation)
	}
	if r.Error != "" {
		s += "  header: " + r.Error
	}
	return s
}

// Text is "  @POS frame ...".
func (r FrameRow) Text() string {
	what := fmt.Sprintf("%d entries", r.Entries)
	if r.Entries == 0 {
		what = "mark"
	}
	if r.Last {
		what += ", last"
	}
	return fmt.Sprintf("  @%d frame  LSN %d  durable %d  %d bytes  %s", r.Pos, r.LSN, r.Durable, r.Length, what)
}

// Text is "    @POS KIND PARTITION ...".
func (r EntryRow) Text() string {
	switch r.Kind {
	case kindName(storage.EntryTrim):
		return fmt.Sprintf("    @%d trim %s  start moves to %d", r.Pos, r.Partition, r.Base)
	case kindName(storage.EntryDrop):
		return fmt.Sprintf("    @%d drop %s", r.Pos, r.Partition)
	}
	return fmt.Sprintf("    @%d %s %s  offsets %d to %d  %d bytes  up to %s", r.Pos, r.Kind, r.Partition, r.Base, r.Last, r.Size, when(r.MaxTimestamp))
}

// Text is "      @POS batch ...".
func (r BatchRow) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "      @%d batch  offsets %d to %d  %d records  %d bytes  %s", r.Pos, r.Base, r.Last, r.Records, r.Size, r.Codec)
	if r.ProducerID != model.NoProducer {
		fmt.Fprintf(&b, "  producer %d epoch %d sequence %d", r.ProducerID, r.ProducerEpoch, r.BaseSequence)
	}
	for word, on := range map[string]bool{"  transactional": r.Transactional, "  control": r.Control} {
		if on {
			b.WriteString(word)
		}
	}
	if !r.Valid {
		b.WriteString("  CHECKSUM WRONG")
	}
	return b.String()
}

// Text is "        OFFSET TIME KEY VALUE".
func (r RecordRow) Text() string {
	return fmt.Sprintf("        %d  %s  %s  %s", r.Offset, when(r.Timestamp), quote(r.Key), quote(r.Value))
}

// Text is "  @POS REASON".
func (r BadRow) Text() string {
	if r.Tail {
		return fmt.Sprintf("  @%d end: %s", r.Pos, r.Reason)
	}
	return fmt.Sprintf("  @%d BAD: %s", r.Pos, r.Reason)
}

// maxShown bounds the bytes of a key or value in text.
const maxShown = 200

func quote(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > maxShown:
		return fmt.Sprintf("%q... (%d bytes)", b[:maxShown], len(b))
	}
	return fmt.Sprintf("%q", b)
}

func when(ms int64) string {
	if ms < 0 {
		return "no time"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

func kindName(k storage.EntryKind) string {
	switch k {
	case storage.EntryBatches:
		return "batches"
	case storage.EntryTrim:
		return "trim"
	case storage.EntryDrop:
		return "drop"
	}
	return fmt.Sprintf("kind %d", k)
}

func frameRow(name string, f *format.Frame) FrameRow {
	return FrameRow{
		Type: "frame", File: name, Pos: f.Pos, LSN: f.LSN, Durable: f.Durable, Length: f.Length,
		Entries: f.Entries, Last: f.Flags&format.FlagLast != 0,
	}
}

func entryRow(name string, f *format.Frame, it *format.Item) EntryRow {
	return EntryRow{
		Type: "entry", File: name, Pos: it.At.Pos, LSN: f.LSN, Kind: kindName(it.Kind), Partition: it.Part.String(),
		Base: it.Base, Last: it.Last, MaxTimestamp: it.MaxTimestamp, Size: it.Size,
	}
}

var codecs = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

func batchRow(name string, part string, pos int64, b model.Batch) BatchRow {
	codec := fmt.Sprintf("codec %d", b.Compression())
	if int(b.Compression()) < len(codecs) {
		codec = codecs[b.Compression()]
	}
	return BatchRow{
		Type: "batch", File: name, Pos: pos, Partition: part, Base: b.BaseOffset(), Last: b.LastOffset(),
		Records: b.NumRecords(), Size: len(b), Codec: codec, MaxTimestamp: b.MaxTimestamp(), LeaderEpoch: b.LeaderEpoch(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
		Transactional: b.IsTransactional(), Control: b.IsControl(), Valid: b.ValidCRC(),
	}
}
