package journal

import (
	"time"
)

const (
	// zeroDelay spares a file that is needed soon: zeros written just before the
	// data would double the writes of bulk load.
	zeroDelay = 2 * time.Second
	// zeroStep is what is written ahead per look; zeroChunk at once.
	zeroStep  = 16 << 20
	zeroChunk = 1 << 20
)

// zeroAhead writes zeros into the part of the waiting file f that was only
// allocated: a sync of blocks that were written before costs about half. It does
// so only when files are recycled or fill slowly. It reports whether f still
// waits for the committer.
func (j *Journal) zeroAhead(f *prepared) bool {
	if f.zeroed >= f.size || j.prep.bulk.Load() || j.stats.frames.Load() == 0 || time.Since(f.made) < zeroDelay {
		return true
	}
	// A handle of its own: a failed sync is told once per handle, and the
	// committer must be told of its own.
	w, err := j.o.FS.OpenRW(f.path)
	if err != nil {
		j.log.Warn("writing zeros ahead", "path", f.path, "error", err)
		return true
	}
	defer w.Close()
	zeros := make([]byte, zeroChunk)
	for end := min(f.zeroed+zeroStep, f.size); f.zeroed < end; {
		n := min(zeroChunk, end-f.zeroed)
		waits := f.ifWaiting(func() { _, err = w.WriteAt(zeros[:n], f.zeroed) })
		if !waits {
			return false
		}
		if err != nil {
			break
		}
		f.zeroed += n
		j.stats.zeroed.Add(uint64(n))
		j.stats.bytesWritten.Add(uint64(n))
	}
	if err == nil {
		err = w.SyncData()
	}
	if err != nil {
		j.log.Warn("writing zeros ahead", "path", f.path, "error", err)
		f.zeroed = f.size // not again
	}
	return true
}
