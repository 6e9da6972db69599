package topics

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// The keys of the catalogue's records: one per topic, one for the broker's
// dynamic settings, one per group with settings. Values are JSON; a null value
// deletes (docs/formats/catalogue.md).
const (
	topicKey        = "topic/"
	brokerRecordKey = "broker"
	groupKey        = "group/"
)

// topicRecord is a topic as it is stored.
type topicRecord struct {
	Name       string            `json:"name"`
	Partitions int32             `json:"partitions"`
	Internal   bool              `json:"internal,omitempty"`
	Created    int64             `json:"created_ms"`
	Configs    map[string]string `json:"configs,omitempty"`
}

func encodeRecord(key string, v any) statelog.Record {
	value, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and maps of strings always encode
	}
	return statelog.Record{Key: []byte(key), Value: value}
}

func (t *Topic) record() topicRecord {
	return topicRecord{t.Name, int32(len(t.Partitions)), t.Internal, t.Created.UnixMilli(), t.Overrides}
}

// applyLocked takes one durable record into the state. Topics get their
// partitions from c.open.
func (c *Catalogue) applyLocked(r statelog.Record) error {
	key := string(r.Key)
	switch {
	case key == brokerRecordKey:
		c.settings.dynamic = nil
		if r.Value != nil {
			if err := json.Unmarshal(r.Value, &c.settings.dynamic); err != nil {
				return badRecord(key, err)
			}
		}
		return c.refreshLocked()
	case strings.HasPrefix(key, groupKey):
		return c.applyGroupLocked(key[len(groupKey):], r.Value)
	case strings.HasPrefix(key, quotaKey):
		return c.applyQuotaLocked(key[len(quotaKey):], r.Value)
	case strings.HasPrefix(key, topicKey):
		id, err := model.ParseTopicID(key[len(topicKey):])
		if err != nil {
			return badRecord(key, err)
		}
		return c.applyTopicLocked(id, r.Value)
	}
	return badRecord(key, fmt.Errorf("unknown kind"))
}

func (c *Catalogue) applyGroupLocked(group string, value []byte) error {
	delete(c.groups, group)
	if value == nil {
		return nil
	}
	var configs map[string]string
	if err := json.Unmarshal(value, &configs); err != nil {
		return badRecord(groupKey+group, err)
	}
	c.groups[group] = configs
	return nil
}

func (c *Catalogue) applyTopicLocked(id model.TopicID, value []byte) error {
	old := c.byID[id]
	if old != nil {
		c.partitions -= len(old.Partitions)
		delete(c.byID, id)
		delete(c.byName, old.Name)
	}
	if value == nil {
		c.version++
		return nil
	}
	var rec topicRecord
	if err := json.Unmarshal(value, &rec); err != nil {
		return badRecord(topicKey+id.String(), err)
	}
	t := &Topic{ID: id, Name: rec.Name, Internal: rec.Internal, Created: time.UnixMilli(rec.Created), Overrides: rec.Configs}
	t.Config = c.settings.effective(rec.Configs)
	if old != nil {
		t.Partitions = append(t.Partitions, old.Partitions...)
	}
	if !c.replaying {
		if err := c.openPartitionsLocked(t, rec.Partitions); err != nil {
			return err
		}
	} else {
		t.Partitions = make([]*partition.Partition, rec.Partitions) // opened when the replay is over
	}
	c.partitions += len(t.Partitions)
	if old == nil || len(old.Partitions) != len(t.Partitions) {
		c.version++
	}
	c.byID[id], c.byName[t.Name] = t, t
	return nil
}

// openPartitionsLocked brings t to n partitions and all of them to t's settings.
func (c *Catalogue) openPartitionsLocked(t *Topic, n int32) error {
	s := t.Config.partition(c.producerExpiryLocked())
	for _, p := range t.Partitions {
		p.SetSettings(s)
	}
	for i := int32(len(t.Partitions)); i < n; i++ {
		p, err := partition.Open(c.o.Store, model.PartitionID{Topic: t.ID, Index: i}, s, c.o.Now)
		if err != nil {
			return err
		}
		t.Partitions = append(t.Partitions, p)
	}
	return nil
}

// refreshLocked recomputes what follows from the broker's settings.
func (c *Catalogue) refreshLocked() error {
	if c.replaying {
		return nil
	}
	for _, old := range c.byID {
		t := *old
		t.Config = c.settings.effective(t.Overrides)
		if err := c.openPartitionsLocked(&t, int32(len(t.Partitions))); err != nil {
			return err
		}
		c.byID[t.ID], c.byName[t.Name] = &t, &t
	}
	return nil
}

func (c *Catalogue) producerExpiryLocked() time.Duration {
	v, _ := c.settings.broker("producer.id.expiration.ms")
	d, _ := time.ParseDuration(v + "ms")
	return d
}

func badRecord(key string, err error) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "replay catalogue", Object: key, Cause: err}
}
