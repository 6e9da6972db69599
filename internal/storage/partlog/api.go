package partlog

import (
	"log/slog"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// Options configure a store. Zero values mean the defaults.
type Options struct {
	FS  vfs.FS // the operating system's
	Dir string

	Sync            journal.SyncMode    // when appends are done; always by default
	Limits          journal.SpaceLimits // soft and hard limit of free space
	JournalFileSize int64               // bytes of one journal file; 64 MiB
	JournalCap      int64               // bytes that recovery may have to replay; 1 GiB
	MemoryBudget    int64               // bytes of batches kept in memory; 64 MiB
	OpenFiles       int                 // handles for reading; 48
	// RetentionInterval is how often retention looks; 5 minutes.
	RetentionInterval time.Duration

	Clock  func() time.Time
	Logger *slog.Logger
	// OnFatal is told once when the disk failed and nothing more can be appended.
	OnFatal func(error)
	// OnSpace is told when the disk's free space crosses a limit.
	OnSpace func(journal.SpaceState)
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.JournalFileSize == 0 {
		o.JournalFileSize = journal.DefaultFileSize
	}
	if o.JournalCap == 0 {
		o.JournalCap = 1 << 30
	}
	if o.MemoryBudget == 0 {
		o.MemoryBudget = 64 << 20
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = 48
	}
	if o.RetentionInterval == 0 {
		o.RetentionInterval = 5 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
	if o.OnSpace == nil {
		o.OnSpace = func(journal.SpaceState) {}
	}
	return o
}

// soloBytes is the share of a flush or merge from which on a log has a file of
// its own, and what makes merging worth a round: 4 MiB for journal files of 64.
func (o *Options) soloBytes() int64 { return o.JournalFileSize / 16 }

// mixedBytes ends a file that small logs share, and bounds the input of a merge.
func (o *Options) mixedBytes() int64 { return 4 * o.JournalFileSize }

// Policy is what a topic's configuration asks of a log. Zero means unlimited
// for sizes and times.
type Policy struct {
	RetentionTime  time.Duration
	RetentionBytes int64
	Delete         bool // cleanup.policy contains delete
	Compact        bool // cleanup.policy contains compact
	SegmentBytes   int64
	SegmentTime    time.Duration

	// For Compact: how much of the log must be dirty (0 means 0.5), how long a
	// record stays uncompacted at least and at most, and how long a tombstone or
	// marker is kept after it has lost its purpose.
	MinDirtyRatio    float64
	MinCompactionLag time.Duration
	MaxCompactionLag time.Duration
	DeleteRetention  time.Duration
}

// Recovered is what a partition needs to rebuild its state: the newest snapshot
// and, after it, the batches since then in order: headers only
// (model.BatchHeaderSize bytes), but control batches whole. Batches that no
// producer id, control flag or change of leader epoch makes worth replaying are
// left out.
type Recovered struct {
	Snapshot []byte
	UpTo     model.Offset // the snapshot covers offsets below this
	Since    []model.Batch
}

// Chunk is the answer to a read: whole batches, in offset order.
type Chunk struct {
	Data  [][]byte // each holds one or more whole batches; immutable
	Bytes int
	Next  model.Offset // the offset to read from next
}

// Snapshotter gives a partition's state as bytes, and the offset below which it
// covers everything. It is called without any lock of the store held.
type Snapshotter func() (state []byte, upTo model.Offset)
