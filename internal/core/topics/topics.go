// Package topics is the catalogue: which topics exist, with what configuration,
// and where their partitions are. Every change is a record in the catalogue's own
// partition (docs/formats/catalogue.md); look-ups read what is durable. It does
// not know requests.
//
// catalogue.go changes, records.go replays, config.go and definitions.go give
// settings their meaning.
package topics

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
)

// Topic is an immutable view of one topic; a change makes a new view.
type Topic struct {
	ID         model.TopicID
	Name       string
	Internal   bool
	Created    time.Time
	Partitions []*partition.Partition
	Config     Config            // effective values, parsed
	Overrides  map[string]string // what was set on the topic; not to be changed
}

// Partition gives one partition; false outside the topic's range.
func (t *Topic) Partition(i int32) (*partition.Partition, bool) {
	if i < 0 || int(i) >= len(t.Partitions) {
		return nil, false
	}
	return t.Partitions[i], true
}

// maxNameLength is Kafka's limit on topic names, in bytes.
const maxNameLength = 249

// CheckName says why a topic cannot have this name (Kafka's rules: letters,
// digits, '.', '_' and '-').
func CheckName(name string) error {
	bad := func(why string) error {
		return model.Err(model.ClassInvalid, fmt.Sprintf("topic name %q %s", name, why))
	}
	switch {
	case name == "":
		return bad("is empty")
	case name == "." || name == "..":
		return bad("is not allowed")
	case len(name) > maxNameLength:
		return bad(fmt.Sprintf("has %d characters; at most %d are allowed", len(name), maxNameLength))
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return bad("may hold letters, digits, '.', '_' and '-' only")
		}
	}
	return nil
}

// ByName looks a topic up.
func (c *Catalogue) ByName(name string) (*Topic, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.byName[name]
	return t, ok
}

// ByID looks a topic up by its id.
func (c *Catalogue) ByID(id model.TopicID) (*Topic, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.byID[id]
	return t, ok
}

// Version changes whenever a topic comes, goes or grows.
func (c *Catalogue) Version() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.version
}

// All gives every topic, by name.
func (c *Catalogue) All() []*Topic {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]*Topic, 0, len(c.byName))
	for _, t := range c.byName {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Topic) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Count gives the number of topics and of their partitions.
func (c *Catalogue) Count() (topics, partitions int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.byName), c.partitions
}

// DescribeTopic lists every setting of a topic with value and origin.
func (c *Catalogue) DescribeTopic(name string) ([]Described, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.byName[name]
	if !ok {
		return nil, unknownTopic(name)
	}
	return c.settings.describe(topicDefinitions, t.Overrides, SourceTopic), nil
}

// DescribeBroker lists the broker's settings.
func (c *Catalogue) DescribeBroker() []Described {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.settings.describe(brokerDefinitions, nil, SourceDynamicBroker)
}

// DescribeGroup lists the settings of a group, whether it exists or not.
func (c *Catalogue) DescribeGroup(group string) []Described {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.settings.describe(groupDefinitions, c.groups[group], SourceGroup)
}

// Groups names the groups that have settings of their own.
func (c *Catalogue) Groups() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	names := make([]string, 0, len(c.groups))
	for g := range c.groups {
		names = append(names, g)
	}
	slices.Sort(names)
	return names
}

// GroupSetting gives the effective value of a group's setting.
func (c *Catalogue) GroupSetting(group, key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, _ := c.settings.resolve(groupDefinitions[key], c.groups[group], SourceGroup)
	return v
}

// GroupSettingInt gives the effective value of a group's numeric setting.
func (c *Catalogue) GroupSettingInt(group, key string) int64 {
	n, _ := strconv.ParseInt(c.GroupSetting(group, key), 10, 64)
	return n
}

// Setting gives the effective value of a broker setting.
func (c *Catalogue) Setting(key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, _ := c.settings.broker(key)
	return v
}

// SettingInt gives the effective value of a broker's numeric setting.
func (c *Catalogue) SettingInt(key string) int64 {
	n, _ := strconv.ParseInt(c.Setting(key), 10, 64)
	return n
}

// SettingMillis gives the effective value of a broker's setting in milliseconds.
func (c *Catalogue) SettingMillis(key string) time.Duration {
	return time.Duration(c.SettingInt(key)) * time.Millisecond
}

func unknownTopic(name string) error {
	return model.Err(model.ClassNotFound, fmt.Sprintf("topic %q does not exist; create it, or list the topics that do", name))
}

// DescribeOverrides lists every setting as a topic with these overrides has it.
func (c *Catalogue) DescribeOverrides(overrides map[string]string) []Described {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.settings.describe(topicDefinitions, overrides, SourceTopic)
}

// Watermarks are the positions of the catalogue's own log.
func (c *Catalogue) Watermarks() partition.Watermarks { return c.log.Partition().Watermarks() }
