package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// magics are the numbers by which Linux tells file systems apart (statfs(2)).
var magics = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext2/3/4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	0x2fc12fc1:                 "zfs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.NFS_SUPER_MAGIC:       "nfs",
	unix.CIFS_SUPER_MAGIC:      "smb",
	unix.SMB2_SUPER_MAGIC:      "smb",
	unix.V9FS_MAGIC:            "9p",
	unix.FUSE_SUPER_MAGIC:      "fuse",
	unix.CEPH_SUPER_MAGIC:      "ceph",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
}

func fileSystemOf(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", err
	}
	magic := int64(uint32(s.Type))
	if name := magics[magic]; name != "" {
		return name, nil
	}
	return fmt.Sprintf("type %#x", magic), nil
}

func descriptorLimit() (uint64, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return l.Max, err // Go raises the soft limit to the hard one
}

// clockSynchronised asks the kernel whether a time daemon keeps the clock.
func clockSynchronised() (synced, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, false
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, true
}
