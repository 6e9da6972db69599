package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// DiskLoad is what the disk is asked to do: the bytes appended to pre-zeroed
// files and made durable (fdatasync) in groups, by one writer. It is the limit
// for any log that loses nothing.
type DiskLoad struct {
	Dir        string
	Bytes      int64 // in all
	GroupBytes int64 // made durable at a time
}

// diskFileBytes is the size of the pre-zeroed file; writing wraps around in it.
const diskFileBytes = 256 << 20

// DiskResult is what the disk did.
type DiskResult struct {
	Dir        string     `json:"dir"`
	Bytes      int64      `json:"bytes"`
	GroupBytes int64      `json:"group_bytes"`
	Syncs      int64      `json:"syncs"`
	Seconds    float64    `json:"seconds"`
	MBPerSec   float64    `json:"mb_per_second"` // 1 MB is 1,000,000 bytes
	Sync       *Quantiles `json:"fdatasync"`
}

func (l DiskLoad) validate() error {
	switch {
	case l.Dir == "":
		return cli.Usagef("--dir is empty: name a directory on the disk to measure")
	case l.GroupBytes < 1 || l.GroupBytes > diskFileBytes:
		return cli.Usagef("--group-bytes is %d: it must be 1 to %d", l.GroupBytes, diskFileBytes)
	case l.Bytes < l.GroupBytes:
		return cli.Usagef("--bytes is %d: it must be at least one group (%d)", l.Bytes, l.GroupBytes)
	}
	return nil
}

// MeasureDisk carries out a disk load in a file of its own, which it removes.
func MeasureDisk(ctx context.Context, l DiskLoad) (result *DiskResult, err error) {
	fs := vfs.OS{}
	name := filepath.ToSlash(filepath.Join(l.Dir, fmt.Sprintf("daybook-bench-disk-%d.tmp", time.Now().UnixNano())))
	file, err := fs.Create(name)
	if err != nil {
		return nil, cli.Hintf(err, "Name a directory that exists and can be written with --dir.")
	}
	defer func() {
		err = errors.Join(err, file.Close(), fs.Remove(name))
	}()
	size := min(l.Bytes, diskFileBytes) / l.GroupBytes * l.GroupBytes
	if err := zero(ctx, file, size); err != nil {
		return nil, err
	}
	group := make([]byte, l.GroupBytes)
	copy(group, newValues(Load{Size: int(min(l.GroupBytes, 1<<20))}).pool)
	var syncs Histogram
	begin, written, at := time.Now(), int64(0), int64(0)
	for written < l.Bytes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at+l.GroupBytes > size {
			at = 0
		}
		if _, err := file.WriteAt(group, at); err != nil {
			return nil, err
		}
		before := time.Now()
		if err := file.SyncData(); err != nil {
			return nil, err
		}
		syncs.Record(time.Since(before))
		written += l.GroupBytes
		at += l.GroupBytes
	}
	took := time.Since(begin).Seconds()
	return &DiskResult{
		Dir: l.Dir, Bytes: written, GroupBytes: l.GroupBytes, Syncs: written / l.GroupBytes,
		Seconds: took, MBPerSec: float64(written) / 1e6 / took, Sync: syncs.Quantiles(),
	}, nil
}

// zero fills the file and makes it durable, as the journal prepares its files.
func zero(ctx context.Context, file vfs.File, size int64) error {
	block := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(block)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := file.WriteAt(block[:min(int64(len(block)), size-at)], at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// Disk measures the disk and prints what it did.
func Disk(ctx context.Context, g *cli.Globals, l DiskLoad) error {
	if err := l.validate(); err != nil {
		return err
	}
	r, err := MeasureDisk(ctx, l)
	if err != nil {
		return err
	}
	return g.Print(r, r.write)
}

func (r *DiskResult) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "Disk:        %.1f MB/s durable in groups of %s (%s in %s)\n"+
		"fdatasync:   p50 %.2f ms, p90 %.2f, p99 %.2f, p99.9 %.2f, max %.2f\n",
		r.MBPerSec, cli.Bytes(r.GroupBytes), cli.Plural(r.Syncs, "group"), cli.Brief(time.Duration(r.Seconds*float64(time.Second))),
		r.Sync.P50, r.Sync.P90, r.Sync.P99, r.Sync.P999, r.Sync.Max)
	return err
}
