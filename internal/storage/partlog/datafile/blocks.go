package datafile

import (
	"container/list"
	"sync"

	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

// Blocks caches block lists by least recent use, under a budget of bytes.
type Blocks struct {
	budget int64

	mu    sync.Mutex
	used  int64
	order list.List // of *cached, the longest unused in front
	byKey map[blockKey]*list.Element
}

type blockKey struct {
	file *File
	pos  int64
}

type cached struct {
	key    blockKey
	blocks []index.Block
}

// blockCost is the memory of one block in a cached list.
const blockCost = 40

// NewBlocks makes a cache of at most budget bytes (but at least one list).
func NewBlocks(budget int64) *Blocks {
	return &Blocks{budget: budget, byKey: make(map[blockKey]*list.Element)}
}

// Get gives the block list of one run of the index file f, which the caller has
// pinned. The list is shared: it must not be changed.
func (c *Blocks) Get(f *File, sec index.Section) ([]index.Block, error) {
	key := blockKey{f, sec.Pos}
	c.mu.Lock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToBack(e)
		c.mu.Unlock()
		return e.Value.(*cached).blocks, nil
	}
	c.mu.Unlock()

	blocks, err := index.LoadBlocks(f, sec)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; !ok {
		c.byKey[key] = c.order.PushBack(&cached{key, blocks})
		c.used += int64(len(blocks)) * blockCost
		for c.used > c.budget && c.order.Len() > 1 {
			c.evictLocked(c.order.Front())
		}
	}
	return blocks, nil
}

// Forget drops the lists of a file that is going away.
func (c *Blocks) Forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*cached).key.file == f {
			c.evictLocked(e)
		}
		e = next
	}
}

func (c *Blocks) evictLocked(e *list.Element) {
	item := c.order.Remove(e).(*cached)
	delete(c.byKey, item.key)
	c.used -= int64(len(item.blocks)) * blockCost
}
