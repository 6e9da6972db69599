package ledgers

import (
	"context"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// buryAgain is how long the undertaker waits before it tries a failed burial again.
const buryAgain = time.Second

// death is a span to bury. done runs when it is buried durably, or when the first
// attempt failed; the undertaker goes on trying all the same.
type death struct {
	s    *Subscription
	d    ledger.Death
	done func(error)
}

// bury hands a death to the undertaker. It is called with the subscription's
// lock held; deaths are bounded by what is in flight.
func (k *Keeper) bury(d death) {
	k.dmu.Lock()
	k.deaths = append(k.deaths, d)
	k.dmu.Unlock()
	select {
	case k.dead <- struct{}{}:
	default:
	}
}

// undertake buries what dies; again ticks for what could not be buried at first.
func (k *Keeper) undertake(ctx context.Context, again <-chan time.Time) {
	var failed []death
	for {
		var due []death
		select {
		case <-ctx.Done():
			return
		case <-k.dead:
			k.dmu.Lock()
			due, k.deaths = k.deaths, nil
			k.dmu.Unlock()
		case <-again:
			due, failed = failed, nil
		}
		for _, d := range due {
			err := d.s.bury(ctx, d)
			if err == nil || ctx.Err() != nil {
				continue
			}
			if d.done != nil {
				k.o.Logger.Error("records were not dead-lettered; trying on", "ledger", d.s.key.Owner, "partition", d.s.key.Part.String(),
					"first", int64(d.d.First), "last", int64(d.d.Last), "err", err)
				d.done(err)
				d.done = nil
			}
			failed = append(failed, d)
		}
	}
}

// bury appends a death's dead letters and its settlement in one append group. A
// record whose dead letter cannot be made stays as it is: not delivered, not
// settled. Nothing is lost for want of a dead letter.
func (s *Subscription) bury(ctx context.Context, dd death) error {
	d := dd.d
	s.mu.Lock()
	letter := s.cfg.DeadLetter
	s.mu.Unlock()
	var items []partition.Append
	if letter != nil {
		data, err := s.read(ctx, d.Span)
		if err != nil {
			return err
		}
		items, err = letter(ctx, Dead{Key: s.key, From: s.part, Span: d.Span, Count: d.Count, Reason: d.Reason, Data: data})
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dying := s.l.Dying(d.Span)
	finish := func(err error) {
		if dd.done != nil {
			dd.done(err)
		}
	}
	if len(dying) == 0 { // the ledger was reset meanwhile
		finish(nil)
		return nil
	}
	items = append(items, s.log.Item([]statelog.Record{s.recordLocked(dying)}))
	err := partition.SubmitEssential(items, func(_ []partition.Result, err error) { finish(err) })
	if err != nil {
		return err
	}
	s.l.Bury(dying)
	s.wakeLocked()
	s.planLocked()
	return nil
}

// read gives the batches that hold span.
func (s *Subscription) read(ctx context.Context, span ledger.Span) (data [][]byte, err error) {
	for at := span.First; at <= span.Last; {
		res, err := s.part.Read(ctx, at, 1<<20, true, partition.ReadUncommitted)
		if model.ClassOf(err) == model.ClassOutOfRange && at < res.LogStart {
			at = res.LogStart // retention was faster
			continue
		}
		if err != nil || res.Bytes == 0 {
			return data, err
		}
		data = append(data, res.Data...)
		at = res.Next
	}
	return data, nil
}
