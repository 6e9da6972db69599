package sharegroups

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// Member reports whether the group knows the member.
func (c *Coordinator) Member(groupID, memberID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[groupID]
	return g != nil && g.members[memberID] != nil
}

// Assigned reports whether the member may fetch from the partition.
func (c *Coordinator) Assigned(groupID, memberID string, p model.PartitionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[groupID]
	return g != nil && g.owns(memberID, p)
}

// Subscription gives the group's ledger over a partition, made where the group
// begins (share.auto.offset.reset) if there is none.
func (c *Coordinator) Subscription(ctx context.Context, groupID string, t *topics.Topic, index int32) (*ledgers.Subscription, error) {
	p, ok := t.Partition(index)
	if !ok {
		return nil, model.Err(model.ClassNotFound, "the partition does not exist; refresh the metadata")
	}
	key := ledgers.Key{Owner: owner + groupID, Part: p.ID()}
	if s, ok := c.o.Ledgers.Get(key); ok {
		return s, nil
	}
	start, err := c.begin(ctx, groupID, p)
	if err != nil {
		return nil, err
	}
	s, _, err := c.o.Ledgers.Subscribe(key, p, start, c.config(groupID, t))
	return s, err
}

// begin gives the offset where a group starts on a partition.
func (c *Coordinator) begin(ctx context.Context, groupID string, p *partition.Partition) (model.Offset, error) {
	kind, back, _ := topics.ShareReset(c.o.Topics.GroupSetting(groupID, "share.auto.offset.reset"))
	w := p.Watermarks()
	switch kind {
	case "earliest":
		return w.LogStart, nil
	case "by_duration":
		at, err := p.OffsetForTime(ctx, c.o.Now().Add(-back).UnixMilli(), partition.ReadUncommitted)
		if err != nil {
			return 0, err
		}
		if at.Offset >= 0 {
			return at.Offset, nil
		}
	}
	return w.HighWatermark, nil
}

// config gives a ledger's configuration from the group's settings.
func (c *Coordinator) config(groupID string, t *topics.Topic) ledgers.Config {
	get := func(key string) string { return c.o.Topics.GroupSetting(groupID, key) }
	num := func(key string) int { return int(c.o.Topics.GroupSettingInt(groupID, key)) }
	cfg := ledgers.Config{
		Config: ledger.Config{
			DeliveryLimit: num("share.delivery.count.limit"), MaxInFlight: num("share.partition.max.record.locks"),
			KeyOrder: get("daybook.share.order") == "key", DelayLetsPass: get("daybook.share.delay.pass") == "true", ParkDeadKeys: get("daybook.share.park") == "true",
		},
		SingleActive: get("daybook.share.single.active") == "true",
		DelayHeader:  get("daybook.share.delay.header"),
		DeadLetter:   c.deadLetter(groupID, t.ID),
	}
	if get("share.isolation.level") == "read_committed" {
		cfg.Isolation = partition.ReadCommitted
	}
	return cfg
}

// refresh brings the group's ledgers to its present settings.
func (c *Coordinator) refresh(groupID string) {
	for _, key := range c.keys(groupID) {
		s, ok := c.o.Ledgers.Get(key)
		t, exists := c.o.Topics.ByID(key.Part.Topic)
		if ok && exists {
			s.Reconfigure(c.config(groupID, t))
		}
	}
}

// LockDuration is how long a delivered record is locked for its member.
func (c *Coordinator) LockDuration(groupID string) time.Duration {
	return time.Duration(c.o.Topics.GroupSettingInt(groupID, "share.record.lock.duration.ms")) * time.Millisecond
}

// ByPriority reports whether higher partitions come first.
func (c *Coordinator) ByPriority(groupID string) bool {
	return c.o.Topics.GroupSetting(groupID, "daybook.share.priority") == "partition"
}

// RenewAllowed reports whether members may renew their locks.
func (c *Coordinator) RenewAllowed(groupID string) bool {
	return c.o.Topics.GroupSetting(groupID, "share.renew.acknowledge.enable") == "true"
}

// ReleaseUntil is when a record that a member releases after count deliveries may
// be delivered again, in milliseconds; 0: at once. Jitter only adds.
func (c *Coordinator) ReleaseUntil(groupID string, count int) int64 {
	get := func(key string) float64 {
		f, _ := strconv.ParseFloat(c.o.Topics.GroupSetting(groupID, key), 64)
		return f
	}
	initial := get("daybook.share.backoff.initial.ms")
	if initial <= 0 {
		return 0
	}
	wait := initial * math.Pow(get("daybook.share.backoff.multiplier"), float64(max(0, count-1)))
	wait = min(wait, get("daybook.share.backoff.max.ms"))
	wait *= 1 + get("daybook.share.backoff.jitter")*rand.Float64()
	return c.o.Now().UnixMilli() + int64(math.Ceil(wait))
}

// Redrive makes settled offsets of one partition ready again for the group alone,
// and tells how many it found: dead letters get another try where they came from,
// without a copy, in their place.
func (c *Coordinator) Redrive(ctx context.Context, groupID string, t *topics.Topic, index int32, offsets []model.Offset) (int64, error) {
	if !c.Exists(groupID) {
		return 0, ErrNoGroup
	}
	s, err := c.Subscription(ctx, groupID, t, index)
	if err != nil {
		return 0, err
	}
	spans := make([]ledger.Span, len(offsets))
	for i, o := range offsets {
		spans[i] = ledger.Span{First: o, Last: o}
	}
	var n int64
	err = all(ctx, 1, func(_ int, done func(error)) { n = s.Reopen(spans, done) })
	return n, err
}

// Unpark opens every key of the group that a dead record closed, and tells how many.
func (c *Coordinator) Unpark(ctx context.Context, groupID string) (int, error) {
	if !c.Exists(groupID) {
		return 0, ErrNoGroup
	}
	subs, err := c.Ledgers(groupID)
	if err != nil {
		return 0, err
	}
	n := 0
	err = all(ctx, len(subs), func(i int, done func(error)) { n += subs[i].Unpark(done) })
	return n, err
}
