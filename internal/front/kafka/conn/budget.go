package conn

import (
	"container/list"
	"sync"
	"time"
)

// stallMin is how long a half-read frame must have been without a byte before
// it may be given up for somebody else's.
const stallMin = time.Second

// budget bounds the bytes of request frames that are in memory, over all
// connections. Bytes are taken as they arrive, not as a length promises them.
// When it is used up, the frames that have stalled longest are given up first, so
// that clients which promise much and send little cannot hold out the others.
type budget struct {
	total int64 // immutable
	now   func() time.Time

	mu      sync.Mutex
	used    int64
	partial list.List     // of *claim, least recently fed first
	free    chan struct{} // closed at the next release; nil when nobody waits
}

// claim is one frame's share.
type claim struct {
	b     *budget
	evict func() // makes the owner's read fail

	// under b.mu
	bytes int64
	fed   time.Time
	at    *list.Element // nil once the frame is complete
}

func newBudget(total int64, now func() time.Time) *budget {
	return &budget{total: total, now: now}
}

// open starts a claim without bytes for a frame that is being read.
func (b *budget) open(evict func()) *claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &claim{b: b, evict: evict, fed: b.now()}
	c.at = b.partial.PushBack(c)
	return c
}

// grow asks for n more bytes and waits for at most wait. A frame of its own
// above the total is let in when nothing else is.
func (c *claim) grow(n int64, wait time.Duration, stop <-chan struct{}) bool {
	b := c.b
	var timeout <-chan time.Time
	for {
		b.mu.Lock()
		if b.used+n <= b.total || b.used == c.bytes {
			b.used += n
			c.bytes += n
			c.touchLocked()
			b.mu.Unlock()
			return true
		}
		b.evictStalledLocked(c)
		if b.free == nil {
			b.free = make(chan struct{})
		}
		free := b.free
		b.mu.Unlock()
		if timeout == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-free:
		case <-timeout:
			return false
		case <-stop:
			return false
		}
	}
}

// touch notes that bytes have arrived.
func (c *claim) touch() {
	c.b.mu.Lock()
	c.touchLocked()
	c.b.mu.Unlock()
}

func (c *claim) touchLocked() {
	c.fed = c.b.now()
	if c.at != nil {
		c.b.partial.MoveToBack(c.at)
	}
}

// complete takes the claim off the list of half-read frames.
func (c *claim) complete() {
	c.b.mu.Lock()
	c.unlistLocked()
	c.b.mu.Unlock()
}

func (c *claim) unlistLocked() {
	if c.at != nil {
		c.b.partial.Remove(c.at)
		c.at = nil
	}
}

// release gives everything back.
func (c *claim) release() {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c.unlistLocked()
	b.used -= c.bytes
	c.bytes = 0
	if b.free != nil {
		close(b.free)
		b.free = nil
	}
}

// evictStalledLocked gives up the frame that has waited longest for bytes, if
// it has waited long enough.
func (b *budget) evictStalledLocked(but *claim) {
	for e := b.partial.Front(); e != nil; e = e.Next() {
		c := e.Value.(*claim)
		if b.now().Sub(c.fed) < stallMin {
			return
		}
		if c != but && c.bytes > 0 {
			c.unlistLocked()
			c.evict()
			return
		}
	}
}

// size is what the claim holds; only its owner changes it.
func (c *claim) size() int64 {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.bytes
}
