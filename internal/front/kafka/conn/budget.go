package conn

import (
	"container/list"
	"sync"
	"time"
)

// How long a half-read request, or a half-written answer, must have been without
// a byte before it may be given up for somebody else's.
const (
	readStall  = time.Second
	writeStall = 5 * time.Second
)

// budget bounds the bytes of requests, or of answers, that are in memory, over all
// connections. Bytes are taken as they arrive, not as a length promises them.
// When it is used up, who has stalled longest is given up first, so that clients
// which promise much and send little, or ask for much and read little, cannot hold
// out the others.
type budget struct {
	total int64 // immutable
	stall time.Duration
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

func newBudget(total int64, stall time.Duration, now func() time.Time) *budget {
	return &budget{total: total, stall: stall, now: now}
}

// open starts a claim without bytes for a frame that is being read.
func (b *budget) open(evict func()) *claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &claim{b: b, evict: evict, fed: b.now()}
	c.at = b.partial.PushBack(c)
	return c
}

// grow asks for n more bytes and waits for at most wait. A claim above the total
// is let in when there is nothing else.
func (c *claim) grow(n int64, wait time.Duration, stop <-chan struct{}) bool {
	return c.take(n, n, wait, stop) == n
}

// take asks for up to want more bytes, and for least at the least. Above that it
// gives no more than a quarter of what is free, so that there is something left for
// the next. 0 means that it waited in vain.
func (c *claim) take(want, least int64, wait time.Duration, stop <-chan struct{}) int64 {
	b := c.b
	var timeout <-chan time.Time
	for {
		b.mu.Lock()
		n := min(want, max(least, (b.total-b.used)/4))
		if b.used+n <= b.total || b.used == c.bytes {
			b.used += n
			c.bytes += n
			c.touchLocked()
			b.mu.Unlock()
			return n
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
			return 0
		case <-stop:
			return 0
		}
	}
}

// keep sets what the claim holds to n bytes: the rest is given back; more, which
// is there already, is counted.
func (c *claim) keep(n int64) {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n - c.bytes
	c.bytes = n
	c.touchLocked()
	b.wakeLocked()
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
	b.wakeLocked()
}

func (b *budget) wakeLocked() {
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
		if b.now().Sub(c.fed) < b.stall {
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
