package app

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// FormatVersion is the version of the data directory as a whole. A change that an
// older Daybook would misread raises it.
const FormatVersion = 1

const metaName = "meta.json"

// maxMeta bounds the file, in bytes.
const maxMeta = 64 << 10

// Meta identifies a data directory. It is written once.
type Meta struct {
	Format    int       `json:"format"`
	ClusterID string    `json:"cluster_id"`
	NodeID    int32     `json:"node_id"`
	Created   time.Time `json:"created"`
}

// checkMeta refuses a directory that this version cannot use, before anything in it
// is touched. ok says that the directory has been used before.
func checkMeta(fs vfs.FS, dir string, nodeID int32) (m Meta, ok bool, err error) {
	m, ok, err = readMeta(fs, dir)
	switch {
	case err != nil || !ok:
		return m, ok, err
	case m.Format > FormatVersion:
		return m, ok, fmt.Errorf("data directory %s has format %d; this Daybook reads format %d: start it with the newer version that wrote it, or name another directory with --data", dir, m.Format, FormatVersion)
	case m.Format < FormatVersion:
		return m, ok, fmt.Errorf("data directory %s has format %d, which this Daybook (format %d) does not read any more: start it with the older version that wrote it, or name another directory with --data", dir, m.Format, FormatVersion)
	case m.NodeID != nodeID:
		return m, ok, fmt.Errorf("data directory %s belongs to node %d, not to node %d: start with --node-id %d, or name another directory with --data", dir, m.NodeID, nodeID, m.NodeID)
	}
	return m, ok, nil
}

// ensureMeta is checkMeta, and on a new directory makes the identity. The caller
// holds the directory's lock.
func ensureMeta(fs vfs.FS, dir string, nodeID int32, now time.Time) (Meta, error) {
	m, ok, err := checkMeta(fs, dir, nodeID)
	if err != nil || ok {
		return m, err
	}
	var id [16]byte
	rand.Read(id[:])
	m = Meta{
		Format: FormatVersion, ClusterID: base64.RawURLEncoding.EncodeToString(id[:]),
		NodeID: nodeID, Created: now.UTC().Truncate(time.Second),
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	return m, replaceFile(fs, dir, metaName, append(data, '\n'))
}

func readMeta(fs vfs.FS, dir string) (m Meta, ok bool, err error) {
	names, err := fs.List(dir)
	if err != nil || !slices.Contains(names, metaName) {
		return m, false, nil // the directory is new, or what opens it next says what is wrong
	}
	name := path.Join(dir, metaName)
	f, err := fs.Open(name)
	if err != nil {
		return m, false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxMeta))
	if err != nil {
		return m, false, fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Format < 1 || m.ClusterID == "" {
		return m, false, fmt.Errorf("%s is damaged (%w); restore it from a backup: it holds the cluster id that clients and tools know", name, errors.Join(err, errors.New("format or cluster_id is missing")))
	}
	return m, true, nil
}

// replaceFile writes a small file so that a crash leaves the old or the new one.
func replaceFile(fs vfs.FS, dir, name string, data []byte) error {
	tmp := path.Join(dir, name+".new")
	// A crash may have left one; it is not there in the usual case.
	_ = fs.Remove(tmp)
	f, err := fs.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(tmp, path.Join(dir, name)); err != nil {
		return err
	}
	return fs.SyncDir(dir)
}
