package partlog

import (
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

// An extent is one entry of a journal file: batches of one log, contiguous there
// and, while its slot is full, in memory.
type extent struct {
	in         *journalFile
	slot       *slot // nil when never in memory (recovered)
	base, last model.Offset
	pos        int64
	maxTs      int64
	size       uint32
	crc        uint32
}

func (e extent) block() index.Block {
	return index.Block{Pos: e.pos, Base: e.base, Last: e.last, MaxTimestamp: e.maxTs, Len: e.size, CRC: e.crc}
}

// A span is one run of a segment: what a log knows of it without its index.
type span struct {
	seg        *segment
	base, last model.Offset
	maxTs      int64
	bytes      int64
	sec        index.Section
}

// journalFile is a file that the journal writes or has sealed.
type journalFile struct {
	file *datafile.File

	// Written by the committer (or by recovery), read by the keeper once sealed.
	logs    []*Log // whose extents lie here, each once
	entries int
	runs    int   // entries that do not lie right behind their log's one before
	bytes   int64 // of batches
}
