package txn

import (
	"errors"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// maxGroupMarkers is how many markers one append group carries; a transaction over
// more partitions ends in several groups.
const maxGroupMarkers = 1000

// marker is one marker on its way.
type marker struct {
	ended   Ended
	version Version
	to      *partition.Partition
}

// endLocked carries out a decided end: prep is in a Prepare state. On an error
// nothing has happened.
func (c *Coordinator) endLocked(s *shard, e *entry, prep *Txn) (*ticket, error) {
	if prep.Parts.Len() <= maxGroupMarkers {
		t, whole, err := c.endWholeLocked(s, e, prep)
		if whole || err != nil {
			return t, err
		}
	}
	t, err := c.recordLocked(s, e, prep)
	if err != nil {
		return nil, err
	}
	if done := c.finishLocked(s, e, prep.UpdatedMS); done != nil {
		t = done
	}
	return t, nil
}

// endWholeLocked tries to do it in one append group. It gives false when some
// partition cannot take its marker now.
func (c *Coordinator) endWholeLocked(s *shard, e *entry, prep *Txn) (*ticket, bool, error) {
	after := prep.complete(prep.UpdatedMS)
	markers := c.resolve(prep, prep.Parts)
	for {
		items := append(c.markerItems(s, markers), s.log.Item([]statelog.Record{prep.record(), after.record()}))
		t, refused, err := c.submitLocked(s, items, markers)
		if err != nil {
			return nil, false, err
		}
		if refused == nil {
			e.txn, e.end = *after, t
			s.noteLocked(after.ID, e)
			return t, true, nil
		}
		if !c.mayPass(prep, markers[refused.Index], refused.Err) {
			return nil, false, nil
		}
		markers = append(markers[:refused.Index:refused.Index], markers[refused.Index+1:]...)
	}
}

// finishLocked writes the markers that are missing, in groups, and the Complete
// record behind them. It gives nil while a partition cannot take its marker.
func (c *Coordinator) finishLocked(s *shard, e *entry, now int64) *ticket {
	todo := c.resolve(&e.txn, e.left)
	var kept []marker
	for len(todo) > 0 {
		batch := todo[:min(len(todo), maxGroupMarkers)]
		_, refused, err := c.submitLocked(s, c.markerItems(s, batch), batch)
		switch {
		case err != nil:
			e.left = partsOf(append(kept, todo...))
			c.opt.Log.Warn("transaction markers wait", "transactionalId", e.txn.ID, "markers", e.left.Len(), "err", err)
			return nil
		case refused == nil:
			todo = todo[len(batch):]
		default:
			m := todo[refused.Index]
			if !c.mayPass(&e.txn, m, refused.Err) {
				kept = append(kept, m)
				c.opt.Log.Warn("transaction marker waits", "transactionalId", e.txn.ID, "topic", m.ended.Topic, "partition", m.ended.Index, "err", refused.Err)
			}
			todo = append(todo[:refused.Index:refused.Index], todo[refused.Index+1:]...)
		}
	}
	if e.left = partsOf(kept); len(kept) > 0 {
		return nil
	}
	t, err := c.recordLocked(s, e, e.txn.complete(now))
	if err != nil {
		c.opt.Log.Warn("transaction completion waits", "transactionalId", e.txn.ID, "err", err)
		return nil
	}
	e.end = t
	return t
}

// mayPass reports that a partition does not need the marker that it refused: it is
// gone, or a newer epoch of the producer has ended the transaction there.
func (c *Coordinator) mayPass(t *Txn, m marker, err error) bool {
	switch model.ClassOf(err) {
	case model.ClassNotFound:
		return true
	case model.ClassFenced:
		c.opt.Log.Warn("transaction marker refused as fenced", "transactionalId", t.ID, "topic", m.ended.Topic, "partition", m.ended.Index, "err", err)
		return true
	}
	return false
}

// resolve lists the markers of t for parts, without partitions that are gone.
func (c *Coordinator) resolve(t *Txn, parts Parts) []marker {
	out := make([]marker, 0, parts.Len())
	for _, topic := range parts.Topics() {
		for _, i := range parts[topic] {
			if p, ok := c.resolvePartition(topic, i); ok {
				ended := Ended{Topic: topic, Index: i, ProducerID: t.ProducerID, Epoch: t.Epoch, Commit: t.State == PrepareCommit}
				out = append(out, marker{ended, t.Version, p})
			}
		}
	}
	return out
}

func partsOf(ms []marker) Parts {
	out := Parts{}
	for _, m := range ms {
		out[m.ended.Topic] = append(out[m.ended.Topic], m.ended.Index)
	}
	return Parts{}.With(out)
}

// markerItems builds the control batches; the epoch of the shard's partition is
// the coordinator epoch.
func (c *Coordinator) markerItems(s *shard, ms []marker) []partition.Append {
	epoch := s.log.Partition().LeaderEpoch()
	items := make([]partition.Append, 0, len(ms)+1)
	for _, m := range ms {
		items = append(items, c.markerItem(m, epoch))
	}
	return items
}

func (c *Coordinator) markerItem(m marker, coordinatorEpoch int32) partition.Append {
	b := records.MarkerBatch(c.opt.Now(), m.ended.ProducerID, m.ended.Epoch, records.Marker{Commit: m.ended.Commit, CoordinatorEpoch: coordinatorEpoch})
	return partition.Append{To: m.to, Batch: b, Origin: partition.FromCoordinator, TxnV2: m.version == V2}
}

// submitLocked puts one append group in line. refused names the marker that its
// partition would not take; then nothing was appended.
func (c *Coordinator) submitLocked(s *shard, items []partition.Append, ms []marker) (t *ticket, refused *partition.ItemError, err error) {
	t = newTicket()
	err = partition.SubmitEssential(items, func(_ []partition.Result, err error) {
		if err == nil {
			for _, m := range ms {
				c.opt.Ended(m.ended)
			}
		}
		t.finish(err)
	})
	if errors.As(err, &refused) && refused.Index < len(ms) {
		return nil, refused, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s.last = t
	return t, nil, nil
}
