package datafile

import (
	"bytes"
	"slices"
	"sync"
)

const (
	recentBlocks = 32
	// recentLeast is the size from which on reading a block twice costs more
	// than keeping it.
	recentLeast = 8 << 10
	recentMost  = 256 << 10
)

// Recent keeps the few blocks that readers stopped in the middle of: who reads
// little at a time comes back for the rest. The zero Recent is ready.
type Recent struct {
	mu     sync.Mutex
	blocks []recent // the latest last
}

type recent struct {
	key  blockKey
	data []byte
}

// Get gives the bytes of the block of size bytes at pos of f, nil if they are not
// kept. One block may begin where a shorter one did: adoption joins blocks.
func (r *Recent) Get(f *File, pos int64, size int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.blocks, func(b recent) bool { return b.key == blockKey{f, pos} && len(b.data) == size })
	if i < 0 {
		return nil
	}
	b := r.blocks[i]
	r.blocks = append(slices.Delete(r.blocks, i, i+1), b)
	return b.data
}

// Put keeps a copy of a block's bytes, which have been checked.
func (r *Recent) Put(f *File, pos int64, data []byte) {
	if len(data) < recentLeast || len(data) > recentMost || r.Get(f, pos, len(data)) != nil {
		return
	}
	data = bytes.Clone(data) // not the larger read that it came with
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.blocks) == recentBlocks {
		r.blocks = slices.Delete(r.blocks, 0, 1)
	}
	r.blocks = append(r.blocks, recent{blockKey{f, pos}, data})
}
