package groups

import (
	"maps"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/codec"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// Commit asks to store offsets of a group.
type Commit struct {
	Group                string
	MemberID, InstanceID string
	Generation           int32         // or member epoch; -1: no group management
	Retention            time.Duration // what requests of version 2 to 4 ask for; negative: the broker's
	Txn                  *Producer     // not nil: part of the producer's open transaction
	Items                []CommitItem
}

// Producer is who runs a transaction.
type Producer struct {
	ID    int64
	Epoch int16
}

// CommitItem is one offset to commit, for a topic by name or, if that is empty, by id.
type CommitItem struct {
	Topic       string
	TopicID     model.TopicID
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: not known
	Metadata    string
}

// CommitResult says what became of a Commit: All for every item, or Each by item.
// What is None is durable.
type CommitResult struct {
	All  refusal.Reason
	Each []refusal.Reason
}

// Commit stores offsets and calls done when they are durable. A group that does
// not exist is made for commits outside group management (GroupNotFound else). In
// a transaction the offsets become visible when its commit marker is durable
// (EndTxn), and done is called when they are staged durably.
func (c *Coordinator) Commit(cm Commit, done func(CommitResult)) {
	if why := c.open(cm.Group); why != refusal.None {
		done(CommitResult{All: why})
		return
	}
	res := CommitResult{Each: make([]refusal.Reason, len(cm.Items))}
	commits := c.commits(&cm, res.Each)
	records := make([]statelog.Record, len(commits))
	for i, k := range commits {
		records[i] = codec.Offset(cm.Group, k)
	}
	found := c.with(cm.Group, cm.Generation < 0, func(g *group, now time.Time) answers {
		if why := g.checkCommitLocked(now, &cm); why != refusal.None {
			return answers{func() { done(CommitResult{All: why}) }}
		}
		if len(commits) == 0 {
			return answers{func() { done(res) }}
		}
		finish := func(err error) {
			if err != nil {
				res = CommitResult{All: storeReason(err)}
			}
			done(res)
		}
		var err error
		if cm.Txn != nil {
			err = g.stageLocked(*cm.Txn, commits, records, finish)
		} else {
			err = g.commitLocked(commits, records, finish)
		}
		if err != nil {
			return answers{func() { finish(err) }}
		}
		return nil
	})
	if !found {
		done(CommitResult{All: refusal.GroupNotFound})
	}
}

// commits picks the items that can be stored and says of the others why not.
func (c *Coordinator) commits(cm *Commit, each []refusal.Reason) []offsets.Commit {
	at := c.opts.Now().UnixMilli()
	expire := int64(-1)
	if cm.Retention >= 0 && cm.Txn == nil {
		expire = at + cm.Retention.Milliseconds()
	}
	cs := make([]offsets.Commit, 0, len(cm.Items))
	metadataMax := int(c.topics.SettingInt("offset.metadata.max.bytes"))
	for i, it := range cm.Items {
		var t *topics.Topic
		if t, each[i] = c.topic(it.Topic, it.TopicID, it.Partition); each[i] != refusal.None {
			continue
		}
		if len(it.Metadata) > metadataMax {
			each[i] = refusal.OffsetMetadataTooLarge
			continue
		}
		cs = append(cs, offsets.Commit{
			Key: offsets.Key{Topic: t.Name, Partition: it.Partition},
			Offset: offsets.Offset{
				Offset: it.Offset, LeaderEpoch: it.LeaderEpoch, Metadata: it.Metadata,
				At: at, ExpireAt: expire, TopicID: t.ID,
			},
		})
	}
	return cs
}

// topic finds the topic by name, or by id when there is no name.
func (c *Coordinator) topic(name string, id model.TopicID, index int32) (*topics.Topic, refusal.Reason) {
	var t *topics.Topic
	ok := false
	missing := refusal.UnknownTopicOrPartition
	if name != "" {
		t, ok = c.topics.ByName(name)
	} else {
		t, ok = c.topics.ByID(id)
		missing = refusal.UnknownTopicID
	}
	if !ok {
		return nil, missing
	}
	if index < 0 || int(index) >= len(t.Partitions) {
		return nil, refusal.UnknownTopicOrPartition
	}
	return t, refusal.None
}

func (g *group) commitLocked(cs []offsets.Commit, rs []statelog.Record, done func(error)) error {
	var order uint64
	err := g.shard.log.Append(rs, func(err error) {
		g.mu.Lock() // a group that is gone in between is still told: nobody reads it
		g.offsets.Written(order, cs, err == nil)
		g.mu.Unlock()
		done(err)
	})
	if err == nil {
		order = g.offsets.Write(cs) // the callback waits for the lock
	}
	return err
}

func (g *group) stageLocked(p Producer, cs []offsets.Commit, rs []statelog.Record, done func(error)) error {
	s := g.shard
	var order uint64
	item := s.log.TxnItem(rs, p.ID, p.Epoch)
	err := partition.Submit([]partition.Append{item}, func(_ []partition.Result, err error) {
		g.mu.Lock() // Stage is called before this gets the lock
		if err != nil {
			g.offsets.Unstage(p.ID, order, cs)
		}
		g.mu.Unlock()
		done(err)
	})
	if err == nil {
		order = g.offsets.Stage(p.ID, p.Epoch, cs)
		s.noteTxn(p.ID, g, true)
	}
	return err
}

// EndTxn applies (commit) or drops the offsets that the producer's transaction has
// staged in one partition of the internal topic. It is called when the marker
// there is durable, in the log's order; it is short and appends nothing, so the
// callback of that append may call it.
func (c *Coordinator) EndTxn(index int32, p Producer, commit bool) {
	if index < 0 || int(index) >= len(c.shards) {
		return
	}
	s := c.shards[index]
	for _, g := range s.inTxn(p.ID) {
		g.mu.Lock()
		if g.offsets.End(p.ID, p.Epoch, commit) {
			s.noteTxn(p.ID, g, false)
		}
		g.settleLocked()
		g.mu.Unlock()
	}
}

// noteTxn remembers whether g has staged offsets of the producer.
func (s *shard) noteTxn(producerID int64, g *group, staged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gs := s.txns[producerID]
	switch {
	case !staged:
		if delete(gs, g); len(gs) == 0 {
			delete(s.txns, producerID)
		}
	case gs == nil:
		s.txns[producerID] = map[*group]bool{g: true}
	default:
		gs[g] = true
	}
}

// inTxn lists the groups that have staged offsets of the producer.
func (s *shard) inTxn(producerID int64) []*group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.txns[producerID]))
}

// Fetch asks for committed offsets.
type Fetch struct {
	Group         string
	MemberID      string // with MemberEpoch, for groups of the consumer protocol
	MemberEpoch   int32  // -1: not checked
	Keys          []offsets.Key
	All           bool // every committed offset instead of Keys
	RequireStable bool // offsets that an open transaction may change are refused (KIP-447)
}

// Fetched is one answer: Offset -1 when nothing is committed.
type Fetched struct {
	offsets.Commit
	Reason refusal.Reason
}

// Fetch reads durable offsets. A group that does not exist has none; that is no error.
func (c *Coordinator) Fetch(f Fetch) ([]Fetched, refusal.Reason) {
	if why := c.open(f.Group); why == refusal.CoordinatorNotAvailable {
		return nil, why
	}
	var out []Fetched
	why := refusal.None
	found := c.with(f.Group, false, func(g *group, _ time.Time) answers {
		if g.consumer != nil {
			if why = g.consumer.CheckFetch(f.MemberID, f.MemberEpoch); why != refusal.None {
				return nil
			}
		}
		if f.All {
			g.offsets.Each(func(cm offsets.Commit) {
				if c.current(cm) {
					out = append(out, Fetched{Commit: cm})
				}
			})
		} else {
			for _, k := range f.Keys {
				o, ok := g.offsets.Get(k)
				cm := offsets.Commit{Key: k, Offset: o}
				if !ok || !c.current(cm) {
					cm.Offset = none
				}
				out = append(out, Fetched{Commit: cm})
			}
		}
		if f.RequireStable {
			for i := range out {
				if g.offsets.Unstable(out[i].Key) {
					out[i].Offset, out[i].Reason = none, refusal.UnstableOffsetCommit
				}
			}
		}
		return nil
	})
	if !found {
		for _, k := range f.Keys {
			out = append(out, Fetched{Commit: offsets.Commit{Key: k, Offset: none}})
		}
	}
	return out, why
}

var none = offsets.Offset{Offset: -1, LeaderEpoch: -1, ExpireAt: -1}

// current reports whether the offset belongs to the topic of today: one that was
// deleted and made again starts without offsets, even if a crash kept the
// deletion from reaching them.
func (c *Coordinator) current(cm offsets.Commit) bool {
	if cm.TopicID.IsZero() {
		return true
	}
	t, ok := c.topics.ByName(cm.Topic)
	return ok && t.ID == cm.TopicID
}

// storeReason is what a client is told when its change was not stored.
func storeReason(err error) refusal.Reason {
	if model.ClassOf(err) == model.ClassTooLarge {
		return refusal.InvalidCommitSize
	}
	return refusal.CoordinatorNotAvailable
}
