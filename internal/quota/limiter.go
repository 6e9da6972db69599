package quota

import (
	"sync"
	"time"
)

const (
	// window is how long a client may save up what it does not use, in seconds
	// (Kafka averages over 11 windows of a second each).
	window = 10
	// sweepSize is how many buckets are kept before the full ones are dropped.
	sweepSize = 4096
)

// Limiter counts what everyone uses. It may be used from any goroutine.
type Limiter struct {
	table func() *Table // the limits as they are now
	now   func() time.Time

	mu      sync.Mutex
	buckets map[share]*bucket
	sweepAt int // buckets from which on to sweep
}

// share is who shares one limit of one kind.
type share struct {
	kind   Kind
	entity Entity
}

// bucket is what is left of a limit: at most window seconds' worth; below zero it
// is owed. A bucket that is full is as good as none.
type bucket struct {
	left float64
	at   time.Time
}

// NewLimiter makes a limiter over the limits that table gives.
func NewLimiter(table func() *Table, now func() time.Time) *Limiter {
	return &Limiter{table: table, now: now, buckets: map[share]*bucket{}, sweepAt: sweepSize}
}

// Charge counts amount for a client and says how long it is to wait before it goes
// on: the time in which what it owes would come in.
func (l *Limiter) Charge(k Kind, user, client string, amount float64) time.Duration {
	t := l.table()
	if t.Empty() {
		return 0
	}
	who, limit, ok := t.find(k, user, client)
	if !ok {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.refillLocked(share{k, who}, limit)
	b.left -= amount
	return owed(b.left, limit)
}

// Spend counts amount unless the client owes already; then nothing is counted and
// it is told how long to wait.
func (l *Limiter) Spend(k Kind, user, client string, amount float64) (wait time.Duration, ok bool) {
	t := l.table()
	who, limit, limited := t.find(k, user, client)
	if !limited {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.refillLocked(share{k, who}, limit)
	if wait = owed(b.left, limit); wait > 0 {
		return wait, false
	}
	b.left -= amount
	return 0, true
}

// Owed says how long a client is to wait for what it has used already.
func (l *Limiter) Owed(k Kind, user, client string) time.Duration {
	return l.Charge(k, user, client, 0)
}

func owed(left, limit float64) time.Duration {
	if left >= 0 {
		return 0
	}
	return time.Duration(min(-left/limit, maxWait) * float64(time.Second))
}

// maxWait bounds what a client is told to wait, in seconds: the protocol counts
// milliseconds in 32 bits.
const maxWait = 1 << 20

// refillLocked brings a bucket up to now.
func (l *Limiter) refillLocked(s share, limit float64) *bucket {
	now := l.now()
	b := l.buckets[s]
	if b == nil {
		l.sweepLocked(now)
		b = &bucket{left: limit * window, at: now}
		l.buckets[s] = b
	}
	if d := now.Sub(b.at); d > 0 {
		b.left += d.Seconds() * limit
		b.at = now
	}
	b.left = min(b.left, limit*window)
	return b
}

// sweepLocked drops the buckets that are full, so that clients with ever new ids
// cost nothing for long.
func (l *Limiter) sweepLocked(now time.Time) {
	if len(l.buckets) < l.sweepAt {
		return
	}
	t := l.table()
	for s, b := range l.buckets {
		limit := t.limitOf(s)
		if limit == 0 || b.left+now.Sub(b.at).Seconds()*limit >= limit*window {
			delete(l.buckets, s)
		}
	}
	l.sweepAt = max(sweepSize, 2*len(l.buckets))
}

// limitOf gives the limit that a share has now, 0 for none.
func (t *Table) limitOf(s share) float64 {
	got, limit, ok := t.find(s.kind, s.entity.User.Value, s.entity.ClientID.Value)
	if !ok || got != s.entity {
		return 0
	}
	return limit
}
