package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
)

// Finding is one thing that Verify has to say.
type Finding struct {
	// Damage parts what has lost bytes from what is only worth knowing.
	Damage bool   `json:"damage"`
	Kind   string `json:"kind"`
	File   string `json:"file,omitempty"`
	// Pos to End are the bytes; FirstLSN to LastLSN the frames, 0 if none.
	Pos      int64     `json:"position,omitempty"`
	End      int64     `json:"end,omitempty"`
	FirstLSN model.LSN `json:"first_lsn,omitempty"`
	LastLSN  model.LSN `json:"last_lsn,omitempty"`
	// Partitions are those touched. Unknown says that there may be others; then
	// findings of kind KindHole tell which offsets are missing.
	Partitions []Range `json:"partitions,omitempty"`
	Unknown    bool    `json:"partitions_unknown,omitempty"`
	What       string  `json:"what"`
	Remedy     string  `json:"remedy,omitempty"`

	// What Repair needs.
	run  *badRun
	hole *hole
}

// Range is a run of offsets of one partition.
type Range struct {
	Partition string       `json:"partition"`
	Base      model.Offset `json:"base_offset"`
	Last      model.Offset `json:"last_offset"`
}

// The kinds of finding.
const (
	KindHeader     = "file-header"
	KindFrame      = "frame"
	KindBatch      = "batch"
	KindMissing    = "missing" // a file or frames that must be there
	KindHole       = "hole"    // offsets that no file holds
	KindIndex      = "index"
	KindCheckpoint = "checkpoint"
	KindTail       = "tail"
	KindStray      = "stray"
	KindAside      = "set-aside"
)

// key tells findings of two looks apart.
func (f *Finding) key() string {
	if f.Kind == KindMissing {
		return f.Kind + f.What
	}
	return fmt.Sprintf("%s %s %d %d %v", f.Kind, f.File, f.Pos, f.FirstLSN, f.Partitions)
}

// Text is the finding in one or two lines.
func (f *Finding) Text() string {
	var b strings.Builder
	word := "note"
	if f.Damage {
		word = "DAMAGE"
	}
	fmt.Fprintf(&b, "%s  %s", word, f.Kind)
	if f.File != "" {
		fmt.Fprintf(&b, "  %s", f.File)
	}
	if f.End > 0 {
		fmt.Fprintf(&b, "  bytes %d to %d", f.Pos, f.End)
	}
	if f.LastLSN > 0 {
		fmt.Fprintf(&b, "  LSN %d to %d", f.FirstLSN, f.LastLSN)
	}
	fmt.Fprintf(&b, "  %s", f.What)
	for _, p := range f.Partitions {
		fmt.Fprintf(&b, "\n    partition %s offsets %d to %d", p.Partition, p.Base, p.Last)
	}
	if f.Unknown {
		b.WriteString("\n    the partitions are not known; holes in their offsets tell")
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, "\n    %s", f.Remedy)
	}
	return b.String()
}

// WriteText prints the report for a person.
func (r *Report) WriteText(w io.Writer) error {
	damages := 0
	for i := range r.Findings {
		if r.Findings[i].Damage {
			damages++
		}
		if _, err := fmt.Fprintln(w, r.Findings[i].Text()); err != nil {
			return err
		}
	}
	verdict := "no damage"
	if damages > 0 {
		verdict = fmt.Sprintf("%d damaged places", damages)
	}
	_, err := fmt.Fprintf(w, "%d files, %d frames, %d entries, %d batches, %d bytes of batches: %s\n",
		r.Files, r.Frames, r.Entries, r.Batches, r.Bytes, verdict)
	return err
}
