package sharegroups

import (
	"context"
	"time"
)

// tickEvery is how often sessions are looked through.
const tickEvery = 500 * time.Millisecond

// run is the session timer.
func (c *Coordinator) run(ctx context.Context) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.expire(c.o.Now().UnixMilli())
		}
	}
}
