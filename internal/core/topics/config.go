package topics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// Config holds the topic settings that act, parsed. Durations of -1 (or of
// Kafka's largest number) mean no limit.
type Config struct {
	CleanupDelete, CleanupCompact         bool
	CompressionType                       string // "producer", "uncompressed", "gzip", …
	DeleteRetention                       time.Duration
	LogAppendTime                         bool
	MaxMessageBytes                       int
	MinCompactionLag, MaxCompactionLag    time.Duration
	MinDirtyRatio                         float64
	MinInsyncReplicas                     int
	RetentionBytes                        int64 // -1: no limit
	RetentionTime                         time.Duration
	SegmentBytes                          int64
	SegmentTime                           time.Duration
	TimestampBeforeMax, TimestampAfterMax time.Duration
}

// Unlimited is the duration that stands for no limit.
const Unlimited = time.Duration(-1)

// Source says where a value came from, by Kafka's ConfigSource numbers.
type Source int8

// The sources.
const (
	SourceTopic          Source = 1
	SourceDynamicBroker  Source = 2
	SourceDynamicDefault Source = 3
	SourceStaticBroker   Source = 4
	SourceDefault        Source = 5
	SourceGroup          Source = 8
)

// Described is one configuration value as DescribeConfigs shows it.
type Described struct {
	Key, Value string
	Type       Type
	Doc        string
	Source     Source
	ReadOnly   bool
	Synonyms   []Synonym
}

// Synonym is one place that could have given the value, in order of precedence.
type Synonym struct {
	Key, Value string
	Source     Source
}

// ConfigOp changes one key. Op is Kafka's: 0 set, 1 delete, 2 append, 3 subtract.
type ConfigOp struct {
	Key, Value string
	Op         int8
}

// The operations of IncrementalAlterConfigs (KIP-339).
const (
	OpSet int8 = iota
	OpDelete
	OpAppend
	OpSubtract
)

// settings are the broker's own values: those of its start and those changed since.
type settings struct {
	static, dynamic map[string]string
}

// broker gives a broker setting's value and the places that define it.
func (s settings) broker(key string) (string, []Synonym) {
	d := brokerDefinitions[key]
	var syn []Synonym
	if v, ok := s.dynamic[key]; ok {
		syn = append(syn, Synonym{key, v, SourceDynamicBroker})
	}
	if v, ok := s.static[key]; ok {
		syn = append(syn, Synonym{key, v, SourceStaticBroker})
	}
	if d != nil && (d.Default != "" || len(syn) == 0) {
		syn = append(syn, Synonym{key, d.Default, SourceDefault})
	}
	if len(syn) == 0 {
		return "", nil
	}
	return syn[0].Value, syn
}

// resolve gives the effective value of a topic or group setting, by precedence:
// its own override, then the broker's settings, then the default.
func (s settings) resolve(d *Definition, overrides map[string]string, own Source) (string, []Synonym) {
	var syn []Synonym
	if v, ok := overrides[d.Key]; ok {
		syn = append(syn, Synonym{d.Key, v, own})
	}
	value, found := "", false
	if len(syn) > 0 {
		value, found = syn[0].Value, true
	}
	for _, bk := range d.brokerKeys {
		_, list := s.broker(bk.key)
		for _, b := range list {
			if b.Value == "" && b.Source == SourceDefault {
				continue
			}
			syn = append(syn, b)
			if !found {
				value, found = scaled(b.Value, bk.scale), true
			}
		}
	}
	if !found {
		value = d.Default
	}
	if len(d.brokerKeys) == 0 {
		syn = append(syn, Synonym{d.Key, d.Default, SourceDefault})
	}
	return value, syn
}

func scaled(v string, by int64) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if by == 1 || err != nil || n < 0 {
		return v
	}
	return strconv.FormatInt(n*by, 10)
}

// describe lists every definition in defs with its value and origin, by key.
func (s settings) describe(defs map[string]*Definition, overrides map[string]string, own Source) []Described {
	out := make([]Described, 0, len(defs))
	for _, key := range slices.Sorted(maps.Keys(defs)) {
		d := defs[key]
		var value string
		var syn []Synonym
		if own == SourceDynamicBroker {
			value, syn = s.broker(key)
		} else {
			value, syn = s.resolve(d, overrides, own)
		}
		source := SourceDefault
		if len(syn) > 0 {
			source = syn[0].Source
		}
		out = append(out, Described{Key: key, Value: value, Type: d.Type, Doc: d.Doc, Source: source, ReadOnly: d.ReadOnly, Synonyms: syn})
	}
	return out
}

// effective parses the values of one topic. All stored values were checked.
func (s settings) effective(overrides map[string]string) Config {
	get := func(key string) string {
		v, _ := s.resolve(topicDefinitions[key], overrides, SourceTopic)
		return v
	}
	num := func(key string) int64 {
		n, _ := strconv.ParseInt(get(key), 10, 64)
		return n
	}
	millis := func(key string) time.Duration {
		n := num(key)
		if n < 0 || n > int64(1<<63-1)/int64(time.Millisecond) {
			return Unlimited
		}
		return time.Duration(n) * time.Millisecond
	}
	ratio, _ := strconv.ParseFloat(get("min.cleanable.dirty.ratio"), 64)
	policies := splitList(get("cleanup.policy"))
	return Config{
		CleanupDelete: slices.Contains(policies, "delete"), CleanupCompact: slices.Contains(policies, "compact"),
		CompressionType: get("compression.type"), DeleteRetention: millis("delete.retention.ms"),
		LogAppendTime: get("message.timestamp.type") == "LogAppendTime", MaxMessageBytes: int(num("max.message.bytes")),
		MinCompactionLag: millis("min.compaction.lag.ms"), MaxCompactionLag: millis("max.compaction.lag.ms"), MinDirtyRatio: ratio,
		MinInsyncReplicas: int(num("min.insync.replicas")),
		RetentionBytes:    num("retention.bytes"), RetentionTime: millis("retention.ms"),
		SegmentBytes: num("segment.bytes"), SegmentTime: millis("segment.ms"),
		TimestampBeforeMax: millis("message.timestamp.before.max.ms"), TimestampAfterMax: millis("message.timestamp.after.max.ms"),
	}
}

// partition gives the part of a configuration that partitions act on.
func (c Config) partition(producerExpiry time.Duration) partition.Settings {
	limit := func(d time.Duration) time.Duration { return max(0, d) }
	// For a log 0 means no limit; a retention of 0 keeps as little as can be.
	age, size := max(c.RetentionTime, time.Millisecond), max(c.RetentionBytes, 1)
	if c.RetentionTime == Unlimited {
		age = 0
	}
	if c.RetentionBytes < 0 {
		size = 0
	}
	return partition.Settings{
		LogAppendTime: c.LogAppendTime, ProducerExpiry: producerExpiry,
		Log: partlog.Policy{
			RetentionTime: age, RetentionBytes: size,
			Delete: c.CleanupDelete, Compact: c.CleanupCompact,
			SegmentBytes: c.SegmentBytes, SegmentTime: limit(c.SegmentTime),
			// A ratio of 0 asks for compaction as soon as anything is dirty.
			MinDirtyRatio: max(c.MinDirtyRatio, math.SmallestNonzeroFloat64), DeleteRetention: limit(c.DeleteRetention),
			MinCompactionLag: limit(c.MinCompactionLag), MaxCompactionLag: limit(c.MaxCompactionLag),
		},
	}
}

// applyOps gives the overrides after ops, each checked against defs.
func (s settings) applyOps(defs map[string]*Definition, overrides map[string]string, own Source, ops []ConfigOp) (map[string]string, error) {
	out := maps.Clone(overrides)
	if out == nil {
		out = map[string]string{}
	}
	for _, op := range ops {
		d := defs[op.Key]
		switch {
		case d == nil:
			return nil, unknownKey(op.Key, defs)
		case d.ReadOnly:
			return nil, model.Err(model.ClassInvalid, fmt.Sprintf("%s is fixed while the broker runs; set it at start", op.Key))
		case (op.Op == OpAppend || op.Op == OpSubtract) && d.Type != List:
			return nil, model.Err(model.ClassInvalid, fmt.Sprintf("%s is not a list: set or delete it", op.Key))
		case op.Op == OpDelete:
			delete(out, op.Key)
			continue
		case op.Op < OpSet || op.Op > OpSubtract:
			return nil, model.Err(model.ClassInvalid, fmt.Sprintf("operation %d is not set (0), delete (1), append (2) or subtract (3)", op.Op))
		}
		value := op.Value
		if op.Op != OpSet {
			old, ok := out[op.Key]
			if !ok {
				old, _ = s.resolve(d, nil, own)
			}
			value = editList(old, op)
		}
		if err := d.Check(value); err != nil {
			return nil, err
		}
		out[op.Key] = value
	}
	return out, nil
}

func editList(old string, op ConfigOp) string {
	list := splitList(old)
	for _, v := range splitList(op.Value) {
		i := slices.Index(list, v)
		switch {
		case op.Op == OpAppend && i < 0:
			list = append(list, v)
		case op.Op == OpSubtract && i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	return strings.Join(list, ",")
}

func unknownKey(key string, defs map[string]*Definition) error {
	best := ""
	for k := range defs {
		if strings.Contains(k, key) || strings.Contains(key, k) {
			if best == "" || k < best {
				best = k
			}
		}
	}
	text := "unknown setting " + strconv.Quote(key)
	if best != "" && key != "" {
		text += "; did you mean " + best + "?"
	}
	return model.Err(model.ClassInvalid, text)
}
