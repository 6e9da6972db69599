package partlog

import (
	"cmp"
	"path"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/partlog/checkpoint"
)

// rebuildCheckpoint makes a checkpoint from what lies in the directory: every
// segment, and every journal file that has an index (it was, or could be,
// adopted), is live; every other journal file is replayed. What a checkpoint
// alone knows is lost: log starts become the first offset that is found, dropped
// partitions are back until the catalogue drops them again, snapshots are empty.
func (s *Store) rebuildCheckpoint() (checkpoint.State, error) {
	st := checkpoint.State{Incarnation: -1}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return st, err
	}
	indexed := make(map[model.FileID]bool)
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		if !ok {
			continue
		}
		// A file's id tells the start that made it.
		st.Incarnation = max(st.Incarnation, int32(id>>32))
		indexed[id] = indexed[id] || ext == format.ExtIndex
	}
	for _, name := range names {
		id, ext, ok := format.ParseFileName(name)
		if !ok || ext != format.ExtData {
			continue
		}
		name = path.Join(s.dir, name)
		segment, err := s.isSegment(name)
		if err != nil {
			return st, err
		}
		if !segment && !indexed[id] {
			continue
		}
		size, err := s.fs.Size(name)
		if err != nil {
			return st, err
		}
		st.Segments = append(st.Segments, checkpoint.Segment{File: id, Size: size, Adopted: !segment})
	}
	slices.SortFunc(st.Segments, func(a, b checkpoint.Segment) int { return cmp.Compare(a.File, b.File) })
	return st, nil
}

// beginAt makes o the log's start if nothing is known of it yet.
func (l *Log) beginAt(o model.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginAtLocked(o)
}

func (l *Log) beginAtLocked(o model.Offset) {
	if l.End() == 0 {
		l.start.Store(int64(o))
		l.end.Store(int64(o))
	}
}
