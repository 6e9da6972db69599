package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// fileSystem is about what a power failure or a network may do to the data.
func (e *exam) fileSystem(context.Context) {
	kind, err := fileSystemOf(e.base())
	if err != nil {
		e.add("file system", Warn, "", "its type cannot be read: %v", err)
		return
	}
	e.judgeFileSystem(kind)
}

func (e *exam) judgeFileSystem(kind string) {
	const check = "file system"
	local := "put the data on a local disk: `daybook serve --data /var/lib/daybook`"
	switch kind {
	case "ext2/3/4", "xfs", "f2fs", "apfs", "hfs", "ntfs":
		e.add(check, OK, "", "%s", kind)
	case "tmpfs", "ramfs":
		e.add(check, Fail, local, "%s: the data is gone when the machine restarts", kind)
	case "nfs", "smb", "9p", "fuse", "ceph":
		e.add(check, Warn, local, "%s: whether a sync reaches a disk depends on the other side", kind)
	case "overlayfs":
		e.add(check, Warn, "mount a volume: `docker run -v daybook-data:/data ...` and `daybook serve --data /data`", "%s: the data goes with the container", kind)
	case "btrfs", "zfs":
		e.add(check, Warn, fmt.Sprintf("on btrfs `chattr +C %s` before the first start turns copying on write off", e.o.Data), "%s: copying on write makes small syncs slower", kind)
	default:
		e.add(check, OK, "", "%s", kind)
	}
}

// room is free space, judged by the limits that the journal keeps.
func (e *exam) room(context.Context) {
	s, err := vfs.OS{}.Space(filepath.ToSlash(e.base()))
	if err != nil {
		e.add("disk room", Warn, "", "cannot be read: %v", err)
		return
	}
	e.judgeRoom(s)
}

func (e *exam) judgeRoom(s vfs.Space) {
	const check = "disk room"
	remedy := "`daybook topic sizes` shows what takes it; `daybook topic trim TOPIC --before -7d`, or `daybook topic alter TOPIC --set retention.ms=N`, frees it"
	found := fmt.Sprintf("%s free of %s", cli.Bytes(int64(s.Free)), cli.Bytes(int64(s.Total)))
	switch (journal.SpaceLimits{}).State(s.Free, s.Total) {
	case journal.SpaceHard:
		e.add(check, Fail, remedy, "%s: new records are refused", found)
	case journal.SpaceSoft:
		e.add(check, Warn, remedy, "%s: producers are slowed", found)
	default:
		e.add(check, OK, "", "%s", found)
	}
}

// The fsync check: so many small writes, and what is judged slow or unlikely.
const (
	fsyncRounds  = 64
	fsyncBytes   = 4096
	fsyncSlow    = 10 * time.Millisecond
	fsyncUseless = 100 * time.Millisecond
	fsyncTooFast = 10 * time.Microsecond
)

// fsync times the disk as the journal uses it: small writes into a pre-zeroed
// file, each made durable.
func (e *exam) fsync(ctx context.Context) {
	times, err := timeSyncs(ctx, e.base())
	if err != nil {
		e.add("fsync", Fail, "see the kernel's log: `dmesg | tail`", "%v", err)
		return
	}
	e.judgeSyncs(times)
}

func (e *exam) judgeSyncs(times []time.Duration) {
	const check = "fsync"
	slices.Sort(times)
	p50, p99 := times[len(times)/2], times[len(times)*99/100]
	found := fmt.Sprintf("p50 %s, p99 %s", cli.Brief(p50), cli.Brief(p99))
	remedy := "`daybook bench disk --dir " + e.base() + "` measures more; a faster disk, or none that others use, is what helps"
	switch {
	case p50 >= fsyncUseless:
		e.add(check, Fail, remedy, "%s: every acknowledgement waits for so long", found)
	case p50 >= fsyncSlow:
		e.add(check, Warn, remedy, "%s: slow; acknowledgements wait for it", found)
	case p50 < fsyncTooFast:
		e.add(check, Warn, "make sure that the disk or its controller keeps its cache over a power failure", "%s: faster than disks are, so writes may stay in a cache", found)
	default:
		e.add(check, OK, "", "%s", found)
	}
}

func timeSyncs(ctx context.Context, dir string) (times []time.Duration, err error) {
	disk := vfs.OS{}
	name := filepath.ToSlash(filepath.Join(dir, fmt.Sprintf(".daybook-doctor-%d.tmp", time.Now().UnixNano())))
	f, err := disk.Create(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), disk.Remove(name)) }()
	block := make([]byte, fsyncBytes)
	for i := range int64(fsyncRounds) {
		if _, err := f.WriteAt(block, i*fsyncBytes); err != nil {
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	block[0] = 1
	for i := range int64(fsyncRounds) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := f.WriteAt(block, i*fsyncBytes); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := f.SyncData(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}
