// Package topics is the catalogue: which topics exist, with what configuration,
// and where their partitions are. Every change is a record in the catalogue's own
// partition; look-ups read an immutable snapshot. It does not know requests.
package topics

import (
	"context"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
)

// Topic is an immutable view of one topic; a change makes a new view.
type Topic struct {
	ID         model.TopicID
	Name       string
	Internal   bool
	Partitions []*partition.Partition
	Config     Config            // effective values, parsed
	Overrides  map[string]string // what was set on the topic
}

// Config holds a topic's effective settings, parsed (see Definitions for all keys).
type Config struct {
	CleanupDelete, CleanupCompact bool
	MaxMessageBytes               int
	CompressionType               string // "producer", "uncompressed", "gzip", …
	LogAppendTime                 bool
	// (and so on: one field for each key that acts)
}

// Spec is what a creation asks for. Partitions < 1 means the broker's default.
type Spec struct {
	Name       string
	Partitions int32
	Configs    map[string]string
	Internal   bool
}

// ConfigOp changes one key. Op is Kafka's: 0 set, 1 delete, 2 append, 3 subtract.
type ConfigOp struct {
	Key, Value string
	Op         int8
}

// Catalogue is safe for use from any goroutine.
type Catalogue struct{}

// ByName and ByID look a topic up in the current snapshot.
func (c *Catalogue) ByName(name string) (*Topic, bool) { panic("stub") }

// ByID looks a topic up by its id.
func (c *Catalogue) ByID(id model.TopicID) (*Topic, bool) { panic("stub") }

// All gives every topic, by name.
func (c *Catalogue) All() []*Topic { panic("stub") }

// Create makes a topic; with validateOnly it only checks. ClassExists, ClassInvalid, ClassPolicy.
func (c *Catalogue) Create(ctx context.Context, s Spec, validateOnly bool) (*Topic, error) {
	panic("stub")
}

// Delete removes a topic and its data. ClassNotFound.
func (c *Catalogue) Delete(ctx context.Context, id model.TopicID) error { panic("stub") }

// AddPartitions grows a topic to total partitions.
func (c *Catalogue) AddPartitions(ctx context.Context, name string, total int32, validateOnly bool) error {
	panic("stub")
}

// AlterTopic changes a topic's configuration; AlterBroker the broker's dynamic defaults.
func (c *Catalogue) AlterTopic(ctx context.Context, name string, ops []ConfigOp, validateOnly bool) error {
	panic("stub")
}

// AlterBroker changes the broker's dynamic configuration.
func (c *Catalogue) AlterBroker(ctx context.Context, ops []ConfigOp, validateOnly bool) error {
	panic("stub")
}

// Described is one configuration value as DescribeConfigs shows it.
type Described struct {
	Key, Value, Default, Type, Doc string
	Source                         int8 // Kafka's ConfigSource numbers
	ReadOnly, Sensitive            bool
	Synonyms                       []Synonym
}

// Synonym is one place that could have given the value, in order of precedence.
type Synonym struct {
	Key, Value string
	Source     int8
}

// DescribeTopic and DescribeBroker list every key with value and origin.
func (c *Catalogue) DescribeTopic(name string) ([]Described, error) { panic("stub") }

// DescribeBroker lists the broker's configuration.
func (c *Catalogue) DescribeBroker() []Described { panic("stub") }
