package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
)

// Report is what Verify found.
type Report struct {
	Files    int       `json:"files"`
	Frames   int       `json:"frames"`
	Entries  int       `json:"entries"`
	Batches  int       `json:"batches"`
	Bytes    int64     `json:"batch_bytes"`
	Findings []Finding `json:"findings"`

	scans []*scan
}

// Damaged reports whether anything is lost or unreadable.
func (r *Report) Damaged() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Damage })
}

// A live broker may be between two writes: damage is believed when looks this far
// apart agree.
const (
	lookAgain = 300 * time.Millisecond
	looks     = 3
)

// Verify reads every data file, index and checkpoint of dir and checks all that
// can be checked: checksums, sequence, offsets, and that each agrees with the
// others. Its error means that it could not look, not that it found damage.
func Verify(ctx context.Context, d *Dir) (*Report, error) {
	known := make(map[string]*scan)
	r, err := d.verify(ctx, known)
	for range looks - 1 {
		if err != nil || !r.Damaged() {
			return r, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(d.pause):
		}
		// Files without findings need not be read again.
		for _, f := range r.Findings {
			delete(known, f.File)
		}
		again, err := Open(d.fs, d.path)
		if err != nil {
			return nil, err
		}
		again.pause = d.pause
		second, err := again.verify(ctx, known)
		if err != nil {
			return nil, err
		}
		before := make(map[string]bool)
		for i := range r.Findings {
			before[r.Findings[i].key()] = true
		}
		second.Findings = slices.DeleteFunc(second.Findings, func(f Finding) bool { return f.Damage && !before[f.key()] })
		*d, r = *again, second
	}
	return r, err
}

// verify looks once. Scans are taken from known and added to it.
func (d *Dir) verify(ctx context.Context, known map[string]*scan) (*Report, error) {
	r := &Report{Findings: d.checkpointFindings()}
	for i := range d.Files {
		f := &d.Files[i]
		if f.Role == RolePrepared {
			continue
		}
		c := known[f.Name]
		if c == nil || f.Role == RoleJournal {
			var err error
			c, err = d.scanFile(ctx, f)
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since: a live broker needs it no more
			}
			if err != nil {
				return nil, err
			}
		}
		c.file = f
		known[f.Name] = c
		r.scans = append(r.scans, c)
		r.Files++
		r.Frames += c.frames
		r.Entries += c.entries
		r.Batches += c.batches
		r.Bytes += c.data
		r.Findings = append(r.Findings, c.findings...)
	}
	d.judge(r)
	if err := d.checkIndexes(ctx, r); err != nil {
		return nil, err
	}
	r.Findings = append(r.Findings, d.holes(r)...)
	for _, name := range d.Aside {
		r.Findings = append(r.Findings, Finding{Kind: KindAside, File: name, What: "set aside; nothing reads it any more"})
	}
	return r, nil
}

func (d *Dir) checkpointFindings() []Finding {
	var all []Finding
	for _, err := range d.twins {
		f := Finding{Damage: true, Kind: KindCheckpoint, What: err.Error(),
			Remedy: "the other copy is whole; the next start writes both again"}
		if d.lost {
			f.Remedy = "the next start builds it again from the data files; deleted records may come back"
		}
		all = append(all, f)
	}
	return all
}

// judge tells damage from the ends of files and from unfinished writes.
func (d *Dir) judge(r *Report) {
	promised := model.LSN(0)
	if d.check.From > 0 {
		promised = d.check.From - 1
	}
	var chain []*scan // the journal's own files, in the order of their LSNs
	for _, c := range r.scans {
		switch c.file.Role {
		case RoleJournal:
			chain = append(chain, c)
			promised = max(promised, c.promised)
		case RoleStray:
			r.Findings = append(r.Findings, Finding{Kind: KindStray, File: c.file.Name,
				What: "no checkpoint lists this segment: it was being written, or the broker stopped in between; the next start removes it"})
		default:
			d.judgeSegment(r, c)
		}
	}
	expect := d.check.From
	for i, c := range chain {
		var next *scan
		if i+1 < len(chain) {
			next = chain[i+1]
		}
		expect = d.judgeJournal(r, c, next, expect, promised)
	}
	if len(chain) > 0 && expect <= promised {
		r.Findings = append(r.Findings, missing(expect, promised))
	}
	for _, s := range d.check.Segments {
		if !slices.ContainsFunc(r.scans, func(c *scan) bool { return c.file.ID == s.File }) {
			r.Findings = append(r.Findings, Finding{Damage: true, Kind: KindMissing, What: fmt.Sprintf(
				"the checkpoint lists file %016x, which is not there", uint64(s.File)),
				Remedy: "put the file back from a backup; without it the offsets of the holes below are lost"})
		}
	}
}

func missing(first, last model.LSN) Finding {
	return Finding{Damage: true, Kind: KindMissing, FirstLSN: first, LastLSN: last, Unknown: true,
		What:   "frames are missing and no file is there that could hold them",
		Remedy: "put the journal file back from a backup; without it the offsets of the holes below are lost"}
}

const healable = "`daybook log repair` keeps what can be read and lets readers pass over the rest"

// judgeSegment takes a file that must be whole up to its size.
func (d *Dir) judgeSegment(r *Report, c *scan) {
	if f := c.file; f.header != nil {
		r.Findings = append(r.Findings, headerFinding(f))
	}
	end := max(c.file.want, c.end)
	for i := range c.bad {
		run := &c.bad[i]
		if run.next == 0 {
			if c.finished || run.pos >= end && c.file.want > 0 {
				continue
			}
			run.end = max(run.end, c.file.want)
		}
		first, last := c.lostFrames(run)
		r.Findings = append(r.Findings, frameFinding(c, run, first, last))
	}
	if !c.finished && len(c.bad) == 0 && !c.endedByCrash() {
		// Nothing is wrong up to the end, but the end is not the one written.
		run := badRun{pos: c.end, end: max(c.file.want, c.end+format.Align), err: errCutOff, after: c.last}
		c.bad = append(c.bad, run)
		r.Findings = append(r.Findings, frameFinding(c, &c.bad[0], c.last+1, c.last+1))
	}
}

// endedByCrash reports that the file is a journal file which a crash ended before its
// last frame was written, and which was adopted so: it has its whole length.
func (c *scan) endedByCrash() bool {
	return c.file.Role == RoleAdopted && c.file.want > 0 && c.file.Size >= c.file.want
}

// lostFrames gives the LSNs that a bad run of a segment held. Where neither the
// frames around it nor the header tell, it is taken for one frame.
func (c *scan) lostFrames(run *badRun) (first, last model.LSN) {
	switch {
	case run.head != nil:
		return run.head.LSN, run.head.LSN
	case run.after > 0:
		first = run.after + 1
	case c.file.header == nil:
		first = c.file.FirstLSN
	default:
		first = max(run.next, 2) - 1
	}
	return first, max(run.next, first+1) - 1
}

var errCutOff = errors.New("the file ends before its last frame")

func headerFinding(f *File) Finding {
	return Finding{Damage: true, Kind: KindHeader, File: f.Name, End: format.HeaderSize, What: f.header.Error(),
		Remedy: "no records are lost; `daybook log repair` writes the header again"}
}

func frameFinding(c *scan, run *badRun, first, last model.LSN) Finding {
	f := Finding{Damage: true, Kind: KindFrame, File: c.file.Name, Pos: run.pos, End: run.end, FirstLSN: first, LastLSN: last,
		Unknown: !run.complete, What: run.err.Error(), Remedy: healable, run: run}
	for _, it := range run.items {
		f.Partitions = append(f.Partitions, Range{it.Part.String(), it.Base, it.Last})
	}
	return f
}

// judgeJournal takes the next file of the journal, whose first frame must be
// expect, and gives the LSN that the file after it must begin with.
func (d *Dir) judgeJournal(r *Report, c, next *scan, expect, promised model.LSN) model.LSN {
	f := c.file
	first := f.FirstLSN
	if f.header != nil {
		first = expect
		if promised >= max(expect, 1) {
			r.Findings = append(r.Findings, headerFinding(f))
		}
	}
	if expect == 0 {
		expect = max(first, 1)
	}
	if first > expect && first-1 >= d.check.From {
		r.Findings = append(r.Findings, missing(expect, first-1))
	}
	expect = max(expect, first)
	for i := range c.bad {
		run := &c.bad[i]
		from := max(run.after+1, expect)
		to := run.next - 1
		if run.next == 0 {
			to = promised
			if next != nil && next.file.header == nil {
				to = next.file.FirstLSN - 1
			}
			if to < from { // the end of what was written
				if !blank(run.err) {
					r.Findings = append(r.Findings, Finding{Kind: KindTail, File: f.Name, Pos: run.pos, End: run.end,
						What: fmt.Sprintf("an unfinished write: %v; it was never acknowledged, the next start cuts it off", run.err)})
				}
				continue
			}
		}
		if from > promised {
			r.Findings = append(r.Findings, Finding{Kind: KindTail, File: f.Name, Pos: run.pos, End: run.end, FirstLSN: from, LastLSN: to,
				What: fmt.Sprintf("unsynced writes with a gap: %v; they were never promised, the next start cuts them off", run.err)})
			return max(expect, c.last+1)
		}
		if to >= d.check.From {
			r.Findings = append(r.Findings, frameFinding(c, run, from, to))
		}
		expect = max(expect, to+1)
	}
	return max(expect, c.last+1)
}
