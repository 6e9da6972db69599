package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash gives a copy of the file system as a power failure at this moment could
// leave it; m goes on unharmed. All that was synced is there. Of what was not,
// seed decides: each write is kept, lost or torn (any of its 512-byte sectors
// kept); each change of a directory is kept or lost. No lock is held in the copy.
func (m *Mem) Crash(seed uint64) *Mem {
	m.world.Lock()
	defer m.world.Unlock()
	rng := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	c := NewMem(m.total)
	crashed := make(map[*memNode]*memNode)
	mood := moods[rng.IntN(len(moods))]
	for _, dir := range slices.Sorted(maps.Keys(m.dirs)) {
		d := m.dirs[dir]
		names := maps.Clone(d.synced)
		for _, op := range d.ops {
			if mood.pick(rng) != lose {
				op.apply(names)
			}
		}
		nd := newMemDir()
		for _, name := range slices.Sorted(maps.Keys(names)) {
			old := names[name]
			n := crashed[old]
			if n == nil {
				n = old.crash(rng, mood)
				crashed[old] = n
			}
			nd.files[name], nd.synced[name] = n, n
			c.used += n.size
		}
		c.dirs[dir] = nd
	}
	return c
}

type fate int

const (
	lose fate = iota
	keep
	tear
)

// mood makes some crashes lose everything, others little, so that few seeds
// reach the corners.
type mood struct{ lose, keep int } // out of 100; the rest is torn

var moods = []mood{{100, 0}, {0, 100}, {0, 0}, {50, 25}, {10, 80}, {80, 10}}

func (m mood) pick(rng *rand.Rand) fate {
	switch n := rng.IntN(100); {
	case n < m.lose:
		return lose
	case n < m.lose+m.keep:
		return keep
	}
	return tear
}

// crash gives the node as it was at its last sync, with what luck kept of the
// changes since.
func (n *memNode) crash(rng *rand.Rand, mood mood) *memNode {
	c := &memNode{pages: make(map[int64]*memPage), old: make(map[int64]*memPage), size: n.oldSize}
	for i, p := range n.pages {
		if _, changed := n.old[i]; !changed && i*memPageSize < n.oldSize {
			c.pages[i] = p // shared until one side writes; both copy first
		}
	}
	for i, p := range n.old {
		if p != nil {
			c.pages[i] = p
		}
	}
	for _, op := range n.ops {
		switch f := mood.pick(rng); {
		case f == lose:
		case op.resize:
			c.resizeLocked(op.off)
		case f == keep:
			c.writeLocked(op.data, op.off)
		default:
			c.tear(rng, op)
		}
	}
	clear(c.old)
	c.oldSize = c.size
	return c
}

// tear writes some sectors of op.
func (n *memNode) tear(rng *rand.Rand, op fileOp) {
	for data, off := op.data, op.off; len(data) > 0; {
		c := min(int64(len(data)), memSector-off%memSector)
		if rng.IntN(2) == 0 {
			n.writeLocked(data[:c], off)
		}
		data, off = data[c:], off+c
	}
}
