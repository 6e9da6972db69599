package groups

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"
)

// timers knows when groups are due: a heap and one goroutine, whatever the number
// of members. An entry may be early (sessions are prolonged all the time); the
// group says then when it is really due.
type timers struct {
	kick chan struct{} // room for one: the first entry has changed

	mu   sync.Mutex
	heap dueHeap
}

func newTimers() *timers { return &timers{kick: make(chan struct{}, 1)} }

// set makes g due at the latest at t; zero asks for nothing.
func (t *timers) set(g *group, at time.Time) {
	if at.IsZero() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case g.index == 0:
		g.due = at
		heap.Push(&t.heap, g)
	case at.Before(g.due):
		g.due = at
		heap.Fix(&t.heap, g.index-1)
	default:
		return
	}
	if g.index == 1 {
		select {
		case t.kick <- struct{}{}:
		default:
		}
	}
}

// take removes the groups that are due and says when the next one is.
func (t *timers) take(now time.Time) (due []*group, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 && !t.heap[0].due.After(now) {
		due = append(due, heap.Pop(&t.heap).(*group))
	}
	if len(t.heap) > 0 {
		next = t.heap[0].due
	}
	return due, next
}

// run is the timer goroutine: sessions, rebalances, retention.
func (c *Coordinator) run(ctx context.Context) {
	sweep := time.NewTicker(retentionCheckInterval)
	defer sweep.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, next := c.timers.take(c.opts.Now())
		for _, g := range due {
			g.do(c.opts.Now(), func(g *group, now time.Time) answers {
				return g.tickLocked(now)
			})
		}
		if len(due) > 0 {
			continue
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = max(next.Sub(c.opts.Now()), 0)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-c.timers.kick:
		case <-timer.C:
		case <-sweep.C:
			c.expireOffsets()
		}
	}
}

// pause waits for d, or for the end of ctx, which is the error then.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepShort is the goroutine that looks after the length of the logs.
func (c *Coordinator) keepShort(ctx context.Context) {
	tick := time.NewTicker(shortInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, s := range c.shards {
			if err := s.shorten(ctx, shortFloor); err != nil && ctx.Err() == nil {
				c.opts.Log.Warn("group log not shortened", slog.Int("partition", i), slog.Any("err", err))
			}
		}
	}
}

// dueHeap orders groups by when they are due; index is place + 1, so that zero
// means not in the heap.
type dueHeap []*group

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *dueHeap) Push(x any) {
	g := x.(*group)
	*h = append(*h, g)
	g.index = len(*h)
}

func (h *dueHeap) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	g.index = 0
	return g
}
