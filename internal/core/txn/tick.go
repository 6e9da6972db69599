package txn

import (
	"context"
	"time"

	"github.com/daybook-mq/daybook/internal/clock"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// tickEvery is how often time-outs and unfinished ends are looked at.
const tickEvery = time.Second

// expireEvery is how often idle transactional ids are looked at.
const expireEvery = time.Minute

func (c *Coordinator) run(ctx context.Context) {
	defer close(c.done)
	var expired time.Time
	clock.Every(ctx, tickEvery, func() {
		now := c.opt.Now()
		for _, s := range c.shards {
			c.tickShard(s, now.UnixMilli())
		}
		if now.Sub(expired) < expireEvery {
			return
		}
		expired = now
		before := now.Add(-c.topics.SettingMillis("transactional.id.expiration.ms"))
		for _, s := range c.shards {
			c.expireIdle(s, before.UnixMilli())
		}
	})
}

// tickShard aborts what has timed out, under a raised epoch so that the producer
// learns of it, and goes on with ends that are not finished.
func (c *Coordinator) tickShard(s *shard, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.busy {
		switch {
		case e.txn.State.Preparing():
			c.finishLocked(s, e, now)
		case e.txn.Expires() <= now:
			c.opt.Log.Info("transaction timed out", "transactionalId", e.txn.ID, "producerId", e.txn.ProducerID, "timeoutMs", e.txn.TimeoutMS)
			if _, err := c.endLocked(s, e, e.txn.fence(now)); err != nil {
				c.opt.Log.Warn("abort of a timed-out transaction waits", "transactionalId", e.txn.ID, "err", err)
			}
		}
	}
}

// expireIdle forgets ids that have done nothing since before (milliseconds).
func (c *Coordinator) expireIdle(s *shard, before int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.txns {
		if s.busy[id] != nil || e.txn.UpdatedMS >= before {
			continue
		}
		t := newTicket()
		if err := s.log.Append([]statelog.Record{{Key: recordKey(id)}}, t.finish); err != nil {
			c.opt.Log.Warn("expiry of transactional ids waits", "err", err)
			return
		}
		s.last = t
		delete(s.txns, id)
	}
}
