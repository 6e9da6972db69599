// Package clock is where components of core let time pass: their goroutines wait
// here, and nowhere else. It starts nothing. Under testing/synctest its time is
// the bubble's.
package clock

import (
	"context"
	"time"
)

// Every calls f once each interval, on the caller's goroutine, until ctx is done.
// A call that takes longer than the interval delays the next one.
func Every(ctx context.Context, interval time.Duration, f func()) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}
