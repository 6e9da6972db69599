package groups

import (
	"log/slog"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
)

// expireOffsets removes offsets that are over (KIP-211) and groups that have
// nothing left: those of an empty group after the retention from when it became
// empty, those of a simple consumer from the commit, and in a live group those of
// topics that no member is subscribed to. All else in a live group stays.
func (c *Coordinator) expireOffsets() {
	for _, g := range c.all() {
		g.do(c.opts.Now(), func(g *group, now time.Time) answers {
			c.expireLocked(g, now)
			return nil
		})
	}
}

func (c *Coordinator) expireLocked(g *group, now time.Time) {
	keep := func(string) bool { return false }
	var base int64
	switch {
	case g.consumer != nil:
		keep = g.subscribedLocked
	case g.classic.State() == classic.Empty:
		if g.classic.ProtocolType() != "" {
			base = g.classic.Since().UnixMilli()
		}
	case g.classic.KnowsTopics():
		keep = g.classic.SubscribedTo
	default:
		return
	}
	retention := c.topics.SettingInt("offsets.retention.minutes") * time.Minute.Milliseconds()
	over := g.offsets.Expired(now.UnixMilli(), base, retention, keep)
	note := func(err error) {
		if err != nil {
			c.opts.Log.Warn("expired offsets not removed", slog.String("group", g.id), slog.Any("err", err))
		}
	}
	var err error
	switch {
	case g.deletableLocked() && len(over) == len(g.offsets.Keys("")):
		c.opts.Log.Info("group expired", slog.String("group", g.id), slog.Int("offsets", len(over)))
		err = g.deleteLocked(now, note)
	case len(over) > 0:
		c.opts.Log.Info("offsets expired", slog.String("group", g.id), slog.Int("offsets", len(over)))
		err = g.dropLocked(over, note)
	}
	note(err)
}
