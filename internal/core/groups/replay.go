package groups

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// replay rebuilds every shard from its partition. A partition that cannot be read
// takes its own groups out of service, not the others: a group without the offsets
// it had would begin anew, so it is better refused until the disk is mended.
func (c *Coordinator) replay(ctx context.Context) error {
	begin := c.opts.Now()
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(runtime.GOMAXPROCS(0))
	for _, s := range c.shards {
		eg.Go(func() error {
			err := s.replay(ctx, begin)
			if err == nil || ctx.Err() != nil {
				return err
			}
			s.unread = err
			s.groups, s.txns = map[string]*group{}, map[int64]map[*group]bool{}
			c.opts.Log.Error("groups of a damaged partition are out of service; see daybook log repair",
				slog.Any("partition", s.log.Partition().ID()), slog.Any("err", err))
			return nil
		})
	}
	if err := eg.Wait(); err != nil {
		return err
	}
	if n := len(c.all()); n > 0 {
		c.opts.Log.Info("groups read back", slog.Int("groups", n), slog.Duration("took", c.opts.Now().Sub(begin)))
	}
	return nil
}

// replayed is a group in the making.
type replayed struct {
	g        *group
	saved    *classic.Saved
	consumer *consumer.Group
}

func (s *shard) replay(ctx context.Context, now time.Time) error {
	found := map[string]*replayed{}
	get := func(id string) *replayed {
		r := found[id]
		if r == nil {
			r = &replayed{g: &group{id: id, shard: s}}
			found[id] = r
		}
		return r
	}
	err := s.log.Replay(ctx, func(e statelog.Entry) error {
		if e.Marker != nil {
			for _, g := range s.inTxn(e.ProducerID) {
				if g.offsets.End(e.ProducerID, e.ProducerEpoch, e.Marker.Commit) {
					s.noteTxn(e.ProducerID, g, false)
				}
			}
			return nil
		}
		ch, err := codec.Decode(e.Record)
		if err != nil {
			// Whole, but not a record of ours: whoever may write here wrote it.
			s.c.opts.Log.Warn("record of a group passed over", slog.Int64("offset", int64(e.Offset)), slog.Any("err", err))
			return nil
		}
		switch ch := ch.(type) {
		case codec.GroupChange:
			get(ch.Group).saved = ch.Saved
		case codec.ConsumerChange:
			r := get(ch.Group)
			if r.consumer == nil {
				r.consumer = consumer.New(ch.Group)
			}
			r.consumer.Replay(ch.Change)
		case codec.OffsetChange:
			r := get(ch.Group)
			if ch.Offset == nil {
				r.g.offsets.Remove(ch.Key)
				break
			}
			cm := offsets.Commit{Key: ch.Key, Offset: *ch.Offset}
			if !e.Transactional {
				r.g.offsets.Put(cm)
				break
			}
			r.g.offsets.Stage(e.ProducerID, e.ProducerEpoch, []offsets.Commit{cm})
			s.noteTxn(e.ProducerID, r.g, true)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, r := range found {
		switch {
		case r.consumer != nil && !r.consumer.Idle():
			r.g.consumer = r.consumer
			r.consumer.Resume(now, s.c.consumerLimits(id).Session)
		case r.saved != nil:
			r.g.classic, r.g.image = classic.Restore(id, *r.saved, now), r.saved
		case r.g.offsets.Empty():
			continue // deleted
		default:
			r.g.classic = classic.New(id, now)
		}
		s.groups[id] = r.g
		s.c.timers.set(r.g, r.g.wakeLocked())
	}
	return nil
}

// dropLostTopics removes offsets of topics that a crash took away from under them.
func (c *Coordinator) dropLostTopics() {
	for _, g := range c.all() {
		g.do(c.opts.Now(), func(g *group, _ time.Time) answers {
			lost := map[string]bool{}
			g.offsets.Each(func(cm offsets.Commit) {
				if !c.current(cm) {
					lost[cm.Topic] = true
				}
			})
			for topic := range lost {
				c.dropTopicLocked(g, topic)
			}
			return nil
		})
	}
}
