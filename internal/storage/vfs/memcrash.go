package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Kill gives a copy of the file system as another process finds it when this one
// was killed: all bytes and names are there, and as unsynced as they were.
func (m *Mem) Kill() *Mem {
	m.world.Lock()
	defer m.world.Unlock()
	c := NewMem(m.total)
	c.used = m.used
	copies := make(map[*memNode]*memNode)
	names := func(of map[string]*memNode) map[string]*memNode {
		to := make(map[string]*memNode)
		for name, n := range of {
			if copies[n] == nil {
				copies[n] = n.clone()
			}
			to[name] = copies[n]
		}
		return to
	}
	for dir, d := range m.dirs {
		nd := &memDir{files: names(d.files), synced: names(d.synced)}
		for _, op := range d.ops {
			if copies[op.node] == nil {
				copies[op.node] = op.node.clone()
			}
			nd.ops = append(nd.ops, dirOp{node: copies[op.node], from: op.from, to: op.to})
		}
		c.dirs[dir] = nd
	}
	return c
}

// clone copies the pages that may still change; the others are shared, as both
// sides copy a page before its first change after a sync.
func (n *memNode) clone() *memNode {
	c := &memNode{pages: maps.Clone(n.pages), size: n.size, old: maps.Clone(n.old), oldSize: n.oldSize, ops: slices.Clone(n.ops)}
	for i := range c.old {
		if p := c.pages[i]; p != nil {
			fresh := *p
			c.pages[i] = &fresh
		}
	}
	return c
}

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
