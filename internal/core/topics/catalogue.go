package topics

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/quota"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// CatalogueID is the topic id of the catalogue's own partition. It is no topic
// that clients see.
var CatalogueID = model.TopicID([]byte("daybook-catalog\x00"))

// Options configure a catalogue.
type Options struct {
	Store *partlog.Store
	Now   func() time.Time
	// Static holds the broker settings given at start, by Kafka's keys.
	Static map[string]string
	// MaxPartitions bounds the partitions of all topics together; 0 for 200,000.
	MaxPartitions int
}

// Change tells what became durable. Partitions is the number before a growth.
type Change struct {
	Deleted    *Topic // a topic that is gone
	Grown      *Topic // a topic that has more partitions now, as it is now
	Partitions int    // how many Grown had
	Group      string // a group whose settings changed
	Broker     bool   // the broker's settings changed
}

// Catalogue is safe for use from any goroutine.
//
// Invariant: byName, byID and partitions show exactly what is durable; pending
// holds the names of creations that are on their way.
type Catalogue struct {
	// immutable
	o   Options
	log *statelog.Log

	quotas atomic.Pointer[quota.Table]

	changing sync.Mutex // one change of existing things at a time, over its whole way

	mu         sync.RWMutex
	byName     map[string]*Topic
	byID       map[model.TopicID]*Topic
	groups     map[string]map[string]string
	settings   settings
	partitions int
	version    uint64
	pending    map[string]int32 // name → partitions
	replaying  bool
	watchers   []func(Change)
}

// Open replays the catalogue and opens every partition.
func Open(ctx context.Context, o Options) (*Catalogue, error) {
	if o.MaxPartitions == 0 {
		o.MaxPartitions = 200_000
	}
	for key, value := range o.Static {
		d := brokerDefinitions[key]
		if d == nil {
			return nil, unknownKey(key, brokerDefinitions)
		}
		if err := d.Check(value); err != nil {
			return nil, err
		}
	}
	own, err := partition.Open(o.Store, model.PartitionID{Topic: CatalogueID}, catalogueSettings, o.Now)
	if err != nil {
		return nil, fmt.Errorf("open catalogue: %w", err)
	}
	c := &Catalogue{
		o: o, log: statelog.New(own, o.Now), settings: settings{static: maps.Clone(o.Static)},
		byName: map[string]*Topic{}, byID: map[model.TopicID]*Topic{}, groups: map[string]map[string]string{}, pending: map[string]int32{},
	}
	c.quotas.Store(quota.NewTable(nil))
	if err := c.replay(ctx); err != nil {
		return nil, fmt.Errorf("open catalogue: %w", err)
	}
	o.Store.Retain(func(id model.PartitionID) bool {
		if id.Topic == CatalogueID {
			return true
		}
		t, ok := c.ByID(id.Topic)
		return ok && int(id.Index) < len(t.Partitions)
	})
	return c, nil
}

// catalogueSettings keep the catalogue's partition for ever, compacted.
var catalogueSettings = partition.Settings{Log: partlog.Policy{Compact: true}}

func (c *Catalogue) replay(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replaying = true
	err := c.log.Replay(ctx, func(e statelog.Entry) error {
		if e.Marker != nil {
			return nil
		}
		return c.applyLocked(e.Record)
	})
	c.replaying = false
	if err != nil {
		return err
	}
	for _, t := range c.byID {
		n := int32(len(t.Partitions))
		t.Partitions = nil
		t.Config = c.settings.effective(t.Overrides)
		if err := c.openPartitionsLocked(t, n); err != nil {
			return err
		}
	}
	return nil
}

// Watch calls f after each change that Change can tell, on the goroutine that
// asked for it and before it is answered; f may append.
func (c *Catalogue) Watch(f func(Change)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(c.watchers, f)
}

func (c *Catalogue) tell(ch Change) {
	c.mu.RLock()
	watchers := c.watchers
	c.mu.RUnlock()
	for _, f := range watchers {
		f(ch)
	}
}

// Spec is what a creation asks for. Partitions -1 means the broker's default.
type Spec struct {
	Name       string
	Partitions int32
	Configs    map[string]string
	Internal   bool
}

// Create makes a topic durably; with validateOnly it only checks and gives the
// topic as it would be, without partitions. ClassExists, ClassInvalid, ClassPolicy.
func (c *Catalogue) Create(ctx context.Context, s Spec, validateOnly bool) (*Topic, error) {
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	rec, cfg, err := c.reserve(s, validateOnly)
	if err != nil {
		return nil, err
	}
	if validateOnly {
		return &Topic{Name: s.Name, Internal: rec.Internal, Overrides: rec.Configs, Config: cfg}, nil
	}
	var id model.TopicID
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	err = c.commit(ctx, encodeRecord(topicKey+id.String(), rec), func() { delete(c.pending, s.Name) })
	if err != nil {
		return nil, err
	}
	t, ok := c.ByID(id)
	if !ok {
		return nil, model.Err(model.ClassNotFound, fmt.Sprintf("topic %q was deleted as soon as it was there", s.Name))
	}
	return t, nil
}

// reserve checks a creation and, unless validateOnly, keeps its name.
func (c *Catalogue) reserve(s Spec, validateOnly bool) (rec topicRecord, cfg Config, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, exists := c.byName[s.Name]
	_, pending := c.pending[s.Name]
	if exists || pending {
		return rec, cfg, model.Err(model.ClassExists, fmt.Sprintf("topic %q exists already", s.Name))
	}
	n := s.Partitions
	if n == -1 {
		v, _ := c.settings.broker("num.partitions")
		_, _ = fmt.Sscan(v, &n)
	}
	if n < 1 {
		return rec, cfg, model.Err(model.ClassInvalid, fmt.Sprintf("topic %q: %d partitions; give at least 1, or -1 for the broker's default", s.Name, n))
	}
	if err := c.roomLocked(int(n)); err != nil {
		return rec, cfg, err
	}
	ops := make([]ConfigOp, 0, len(s.Configs))
	for k, v := range s.Configs {
		ops = append(ops, ConfigOp{Key: k, Value: v})
	}
	configs, err := c.settings.applyOps(topicDefinitions, nil, SourceTopic, ops)
	if err != nil {
		return rec, cfg, err
	}
	if !validateOnly {
		c.pending[s.Name] = n
	}
	rec = topicRecord{s.Name, n, s.Internal, c.o.Now().UnixMilli(), configs}
	return rec, c.settings.effective(configs), nil
}

func (c *Catalogue) roomLocked(more int) error {
	n := c.partitions + more
	for _, p := range c.pending {
		n += int(p)
	}
	if n > c.o.MaxPartitions {
		return model.Err(model.ClassPolicy, fmt.Sprintf("%d partitions would be more than the %d that this broker allows; use fewer, or raise --max-partitions", n, c.o.MaxPartitions))
	}
	return nil
}

// commit makes one record durable and applies it; then also runs, under mu, when
// the record is applied or has failed.
func (c *Catalogue) commit(ctx context.Context, r statelog.Record, then func()) error {
	ch := make(chan error, 1)
	finish := func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			err = c.applyLocked(r)
		}
		if then != nil {
			then()
		}
		ch <- err
	}
	if err := c.log.Append([]statelog.Record{r}, finish); err != nil {
		finish(err)
	}
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Delete removes a topic and its data durably. ClassNotFound.
func (c *Catalogue) Delete(ctx context.Context, id model.TopicID) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	t, ok := c.ByID(id)
	if !ok {
		return model.Err(model.ClassNotFound, fmt.Sprintf("topic id %v does not exist", id))
	}
	if err := c.commit(ctx, statelog.Record{Key: []byte(topicKey + id.String())}, nil); err != nil {
		return err
	}
	for _, p := range t.Partitions {
		// What a crash leaves between the record and here goes at the next start (Retain).
		if err := p.Delete(func(error) {}); err != nil {
			return fmt.Errorf("delete topic %q: %w", t.Name, err)
		}
	}
	c.tell(Change{Deleted: t})
	return nil
}

// AddPartitions grows a topic to total partitions.
func (c *Catalogue) AddPartitions(ctx context.Context, name string, total int32, validateOnly bool) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	t, ok := c.ByName(name)
	if !ok {
		return unknownTopic(name)
	}
	had := len(t.Partitions)
	if int(total) <= had {
		return model.Err(model.ClassInvalid, fmt.Sprintf("topic %q has %d partitions already; ask for more than that (partitions cannot be taken away)", name, had))
	}
	c.mu.RLock()
	err := c.roomLocked(int(total) - had)
	c.mu.RUnlock()
	if err != nil || validateOnly {
		return err
	}
	rec := t.record()
	rec.Partitions = total
	if err := c.commit(ctx, encodeRecord(topicKey+t.ID.String(), rec), nil); err != nil {
		return err
	}
	if grown, ok := c.ByID(t.ID); ok {
		c.tell(Change{Grown: grown, Partitions: had})
	}
	return nil
}

// AlterTopic changes a topic's configuration.
func (c *Catalogue) AlterTopic(ctx context.Context, name string, ops []ConfigOp, validateOnly bool) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	t, ok := c.ByName(name)
	if !ok {
		return unknownTopic(name)
	}
	rec := t.record()
	var err error
	if rec.Configs, err = c.edit(topicDefinitions, t.Overrides, SourceTopic, ops); err != nil || validateOnly {
		return err
	}
	return c.commit(ctx, encodeRecord(topicKey+t.ID.String(), rec), nil)
}

// ReplaceTopic sets a topic's whole configuration (AlterConfigs): what is not
// named goes back to its default.
func (c *Catalogue) ReplaceTopic(ctx context.Context, name string, configs map[string]string, validateOnly bool) error {
	t, ok := c.ByName(name)
	if !ok {
		return unknownTopic(name)
	}
	return c.AlterTopic(ctx, name, replaceOps(t.Overrides, configs), validateOnly)
}

// ReplaceBroker sets the broker's whole dynamic configuration (AlterConfigs).
func (c *Catalogue) ReplaceBroker(ctx context.Context, configs map[string]string, validateOnly bool) error {
	c.mu.RLock()
	old := c.settings.dynamic
	c.mu.RUnlock()
	return c.AlterBroker(ctx, replaceOps(old, configs), validateOnly)
}

func replaceOps(old, configs map[string]string) []ConfigOp {
	var ops []ConfigOp
	for k := range old {
		if _, ok := configs[k]; !ok {
			ops = append(ops, ConfigOp{Key: k, Op: OpDelete})
		}
	}
	for k, v := range configs {
		ops = append(ops, ConfigOp{Key: k, Value: v})
	}
	return ops
}

// AlterBroker changes the broker's dynamic configuration.
func (c *Catalogue) AlterBroker(ctx context.Context, ops []ConfigOp, validateOnly bool) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	old := c.settings.dynamic
	c.mu.RUnlock()
	configs, err := c.edit(brokerDefinitions, old, SourceDynamicBroker, ops)
	if err != nil || validateOnly {
		return err
	}
	if err := c.commit(ctx, encodeRecord(brokerRecordKey, configs), nil); err != nil {
		return err
	}
	c.tell(Change{Broker: true})
	return nil
}

// AlterGroup changes the settings of a group (resource type GROUP).
func (c *Catalogue) AlterGroup(ctx context.Context, group string, ops []ConfigOp, validateOnly bool) error {
	if group == "" {
		return model.Err(model.ClassInvalid, "a group's settings need the group's name")
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	old := c.groups[group]
	c.mu.RUnlock()
	configs, err := c.edit(groupDefinitions, old, SourceGroup, ops)
	if err != nil || validateOnly {
		return err
	}
	rec := statelog.Record{Key: []byte(groupKey + group)}
	if len(configs) > 0 {
		rec = encodeRecord(groupKey+group, configs)
	}
	if err := c.commit(ctx, rec, nil); err != nil {
		return err
	}
	c.tell(Change{Group: group})
	return nil
}

func (c *Catalogue) edit(defs map[string]*Definition, old map[string]string, own Source, ops []ConfigOp) (map[string]string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.settings.applyOps(defs, old, own, ops)
}
