package ledgers

import (
	"container/heap"
	"context"
	"time"
)

// plan is a time at which a subscription wants to be called.
type plan struct {
	at int64
	s  *Subscription
}

type plans []plan

func (p plans) Len() int           { return len(p) }
func (p plans) Less(i, j int) bool { return p[i].at < p[j].at }
func (p plans) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *plans) Push(x any)        { *p = append(*p, x.(plan)) }
func (p *plans) Pop() any {
	old := *p
	x := old[len(old)-1]
	old[len(old)-1] = plan{}
	*p = old[:len(old)-1]
	return x
}

// plan is called with the subscription's lock held, never the other way round.
func (k *Keeper) plan(at int64, s *Subscription) {
	k.mu.Lock()
	k.planLocked(at, s)
	k.mu.Unlock()
}

func (k *Keeper) planLocked(at int64, s *Subscription) {
	heap.Push(&k.plans, plan{at, s})
	if k.plans[0].s == s {
		select {
		case k.poke <- struct{}{}:
		default:
		}
	}
}

// timer calls the subscriptions whose time has come.
func (k *Keeper) timer(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := k.due()
		for _, s := range due {
			s.tick(k.o.Now().UnixMilli())
		}
		if len(due) > 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-k.poke:
		case <-timer.C:
		}
	}
}

func (k *Keeper) due() (due []*Subscription, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now().UnixMilli()
	for len(k.plans) > 0 && k.plans[0].at <= now {
		due = append(due, heap.Pop(&k.plans).(plan).s)
	}
	wait = time.Hour
	if len(k.plans) > 0 {
		wait = time.Duration(k.plans[0].at-now) * time.Millisecond
	}
	return due, wait
}

func (k *Keeper) timedUndertaker(ctx context.Context) {
	again := time.NewTicker(buryAgain)
	defer again.Stop()
	k.undertake(ctx, again.C)
}
