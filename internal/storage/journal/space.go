package journal

import (
	"sync/atomic"
)

// SpaceState says how much room the disk has left.
type SpaceState int32

// Below the soft limit retention should run now and producers be slowed; below
// the hard limit only essential groups are accepted.
const (
	SpaceOK SpaceState = iota
	SpaceSoft
	SpaceHard
)

// String is for logs and metrics.
func (s SpaceState) String() string {
	return [...]string{"ok", "soft", "hard"}[s]
}

// SpaceLimits are amounts of free space, in bytes. Zero means the default: 5 %
// of the disk but at most 4 GiB (soft), 2 % but at most 1 GiB (hard).
type SpaceLimits struct{ Soft, Hard uint64 }

// State judges the free bytes of a disk of total bytes.
func (l SpaceLimits) State(free, total uint64) SpaceState {
	if l.Soft == 0 {
		l.Soft = min(total/20, 4<<30)
	}
	if l.Hard == 0 {
		l.Hard = min(total/50, 1<<30)
	}
	switch {
	case free < l.Hard:
		return SpaceHard
	case free < l.Soft:
		return SpaceSoft
	}
	return SpaceOK
}

// spaceGauge is what was seen last.
type spaceGauge struct {
	state atomic.Int32
	free  atomic.Uint64
}

// SpaceState is the disk's state at the last look, at most a second ago or so.
func (j *Journal) SpaceState() SpaceState { return SpaceState(j.stats.space.state.Load()) }

// CheckSpace looks again soon; whoever has freed room calls it.
func (j *Journal) CheckSpace() { j.prep.nudge() }

// checkSpace looks at the disk, tells Append and, on a change, OnSpace.
func (j *Journal) checkSpace() {
	sp, err := j.o.FS.Space(j.o.Dir)
	if err != nil {
		j.log.Warn("cannot tell the disk's free space", "dir", j.o.Dir, "error", err)
		return
	}
	state := j.o.Limits.State(sp.Free, sp.Total)
	j.stats.space.free.Store(sp.Free)
	before := SpaceState(j.stats.space.state.Swap(int32(state)))
	j.mu.Lock()
	j.mu.room.hard = state == SpaceHard
	j.mu.Unlock()
	if before == state {
		return
	}
	j.log.Warn("disk space state changed", "state", state.String(), "was", before.String(), "free_bytes", sp.Free)
	if j.o.OnSpace != nil {
		j.o.OnSpace(state)
	}
}
