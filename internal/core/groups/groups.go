// Package groups is the group coordinator: which consumers share a group, who
// leads, who owns what, and the offsets they have committed. The rules of a group
// are the machines' (classic), the positions the store's (offsets); this package
// gives them a lock each, one timer, and a log: the partitions of
// __consumer_offsets, in Kafka's own record formats. It knows no requests.
package groups

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
)

// Invariants:
//   - what a group appends is appended under its lock, so the log's order is the
//     order of its decisions;
//   - locks are taken in the order group, shard; group, timers;
//   - a group that is out of its shard's map is gone: whoever finds it so looks again.

// OffsetsTopic is the internal topic that holds groups and offsets.
const OffsetsTopic = "__consumer_offsets"

// Options configure the coordinator; both fields are needed. What brokers have
// settings for (group.…, offsets.…) comes from the catalogue and may change.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
}

// retentionCheckInterval is how often offsets are looked at that may be over.
const retentionCheckInterval = 10 * time.Minute

// newMemberTimeout is how long Kafka parks a first join.
const newMemberTimeout = 5 * time.Minute

// classicLimits are the broker's settings for classic groups, as they are now.
func (c *Coordinator) classicLimits() classic.Limits {
	return classic.Limits{
		SessionTimeoutMin:     c.topics.SettingMillis("group.min.session.timeout.ms"),
		SessionTimeoutMax:     c.topics.SettingMillis("group.max.session.timeout.ms"),
		InitialRebalanceDelay: c.topics.SettingMillis("group.initial.rebalance.delay.ms"),
		NewMemberTimeout:      newMemberTimeout,
		MaxSize:               int(c.topics.SettingInt("group.max.size")),
	}
}

// Coordinator is all groups of the broker. Its methods may be called from any
// goroutine. Callbacks are called once, from any goroutine, without a lock held,
// and must not block.
type Coordinator struct {
	// immutable
	opts   Options
	topics *topics.Catalogue
	shards []*shard
	timers *timers
	stats  stats

	seen atomic.Pointer[consumer.Topics] // the topics as they were last looked at

	stopped atomic.Bool
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Open creates the internal topic if it is not there, reads the groups back and
// starts the timer.
func Open(ctx context.Context, cat *topics.Catalogue, o Options) (*Coordinator, error) {
	t, ok := cat.ByName(OffsetsTopic)
	if !ok {
		var err error
		t, err = cat.Create(ctx, topics.Spec{
			Name: OffsetsTopic, Partitions: int32(cat.SettingInt("offsets.topic.num.partitions")), Internal: true,
			Configs: map[string]string{"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
		}, false)
		if err != nil {
			return nil, err
		}
	}
	c := &Coordinator{opts: o, topics: cat, timers: newTimers()}
	for _, p := range t.Partitions {
		c.shards = append(c.shards, newShard(c, p))
	}
	if err := c.replay(ctx); err != nil {
		return nil, err
	}
	c.dropLostTopics()
	cat.Watch(c.topicChanged)
	run, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.done.Go(func() { c.run(run) }) // joined by Stop, both
	c.done.Go(func() { c.keepShort(run) })
	return c, nil
}

// Stop answers whoever waits, and refuses what comes after: clients look for the
// coordinator again. What is stored stays as it is. The partitions must outlive it.
func (c *Coordinator) Stop() {
	if c.stopped.Swap(true) {
		return
	}
	c.stop()
	c.done.Wait()
	now := c.opts.Now()
	for _, g := range c.all() {
		g.stop(now)
	}
}

// PartitionFor is the index of the __consumer_offsets partition that holds group:
// Kafka's choice, so that tools look in the right place.
func (c *Coordinator) PartitionFor(group string) int32 {
	return partitionFor(group, len(c.shards))
}

// OffsetsPartition is the partition that holds group; a transaction that commits
// offsets of the group writes its marker there.
func (c *Coordinator) OffsetsPartition(group string) *partition.Partition {
	return c.shardOf(group).log.Partition()
}

func (c *Coordinator) shardOf(group string) *shard { return c.shards[c.PartitionFor(group)] }

// partitionFor is Java's String.hashCode, made positive, modulo n.
func partitionFor(group string, n int) int32 {
	var h int32
	for _, u := range utf16.Encode([]rune(group)) {
		h = 31*h + int32(u)
	}
	if h == -1<<31 {
		h = 0
	}
	return max(h, -h) % int32(n)
}

// all gives the groups of this moment.
func (c *Coordinator) all() []*group {
	var gs []*group
	for _, s := range c.shards {
		gs = s.appendAll(gs)
	}
	return gs
}
