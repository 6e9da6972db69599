package topics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
)

// Type is the type of a configuration value, by Kafka's wire numbers.
type Type int8

// The types that Daybook's settings have.
const (
	Boolean Type = 1
	String  Type = 2
	Int     Type = 3
	Long    Type = 5
	Double  Type = 6
	List    Type = 7
)

// String is Kafka's name of the type.
func (t Type) String() string {
	return map[Type]string{Boolean: "boolean", String: "string", Int: "int", Long: "long", Double: "double", List: "list"}[t]
}

// Definition describes one setting: its key, type, default, range and meaning.
type Definition struct {
	Key      string
	Type     Type
	Default  string
	Doc      string
	Min, Max float64  // numbers only; Max 0 means none
	Allowed  []string // strings and lists only; nil means any
	ReadOnly bool     // brokers only: fixed at start

	check func(string) error // beyond type, range and Allowed

	// brokerKeys name the broker settings that give a topic setting its default,
	// in order of precedence, each with the factor to the topic's unit.
	brokerKeys []brokerKey
}

type brokerKey struct {
	key   string
	scale int64
}

func from(keys ...string) []brokerKey {
	out := make([]brokerKey, len(keys))
	for i, k := range keys {
		out[i] = brokerKey{k, 1}
	}
	return out
}

const (
	forever    = "9223372036854775807"
	week       = "604800000"
	day        = "86400000"
	maxInt     = float64(math.MaxInt32)
	unlimited  = -1
	oneMeg     = "1048588" // Kafka's default: a mebibyte of records and the batch header
	aGibibyte  = "1073741824"
	oneMinute  = "60000"
	oneHour    = "3600000"
	hourMillis = 3600_000
)

var codecs = []string{"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"}

// topicDefinitions lists every topic setting of Kafka 4. Those that have no
// meaning on this engine are kept and given back, and their Doc says so.
var topicDefinitions = index([]Definition{
	{Key: "cleanup.policy", Type: List, Default: "delete", Allowed: []string{"delete", "compact"}, brokerKeys: from("log.cleanup.policy"), Doc: "delete: drop old data by retention.ms and retention.bytes. compact: keep the last value of each key. Both may be given."},
	{Key: "compression.type", Type: String, Default: "producer", Allowed: codecs, brokerKeys: from("compression.type"), Doc: "The codec that batches are stored with; producer keeps what the producer chose."},
	{Key: "compression.gzip.level", Type: Int, Default: "-1", Min: -1, Max: 9, brokerKeys: from("compression.gzip.level"), Doc: "Kept and given back; batches are recompressed at the codec's default level."},
	{Key: "compression.lz4.level", Type: Int, Default: "9", Min: 1, Max: 17, brokerKeys: from("compression.lz4.level"), Doc: "Kept and given back; batches are recompressed at the codec's default level."},
	{Key: "compression.zstd.level", Type: Int, Default: "3", Min: -131072, Max: 22, brokerKeys: from("compression.zstd.level"), Doc: "Kept and given back; batches are recompressed at the codec's default level."},
	{Key: "delete.retention.ms", Type: Long, Default: day, brokerKeys: from("log.cleaner.delete.retention.ms"), Doc: "How long compaction keeps tombstones and transaction markers, in milliseconds."},
	{Key: "file.delete.delay.ms", Type: Long, Default: oneMinute, brokerKeys: from("log.segment.delete.delay.ms"), Doc: "Kept and given back; files are removed as soon as no reader needs them."},
	{Key: "flush.messages", Type: Long, Default: forever, Min: 1, brokerKeys: from("log.flush.interval.messages"), Doc: "Kept and given back; every acknowledged record is on disk already (see --sync)."},
	{Key: "flush.ms", Type: Long, Default: forever, brokerKeys: from("log.flush.interval.ms"), Doc: "Kept and given back; every acknowledged record is on disk already (see --sync)."},
	{Key: "errors.deadletterqueue.group.enable", Type: Boolean, Default: "false", Doc: "Whether share groups may write their dead letters to this topic (KIP-1191)."},
	{Key: "follower.replication.throttled.replicas", Type: List, Doc: "Kept and given back; one node has no followers."},
	{Key: "leader.replication.throttled.replicas", Type: List, Doc: "Kept and given back; one node has no followers."},
	{Key: "index.interval.bytes", Type: Int, Default: "4096", Max: maxInt, brokerKeys: from("log.index.interval.bytes"), Doc: "Kept and given back; the index follows the blocks of the data files."},
	{Key: "local.retention.bytes", Type: Long, Default: "-2", Min: -2, brokerKeys: from("log.local.retention.bytes"), Doc: "Kept and given back; there is no remote tier."},
	{Key: "local.retention.ms", Type: Long, Default: "-2", Min: -2, brokerKeys: from("log.local.retention.ms"), Doc: "Kept and given back; there is no remote tier."},
	{Key: "max.compaction.lag.ms", Type: Long, Default: forever, Min: 1, brokerKeys: from("log.cleaner.max.compaction.lag.ms"), Doc: "A record is compacted at the latest after this many milliseconds."},
	{Key: "max.message.bytes", Type: Int, Default: oneMeg, Max: maxInt, brokerKeys: from("message.max.bytes"), Doc: "The largest record batch that is accepted, in bytes."},
	{Key: "message.timestamp.after.max.ms", Type: Long, Default: oneHour, brokerKeys: from("log.message.timestamp.after.max.ms"), Doc: "How far a record's timestamp may lie in the broker's future, in milliseconds (CreateTime only)."},
	{Key: "message.timestamp.before.max.ms", Type: Long, Default: forever, brokerKeys: from("log.message.timestamp.before.max.ms"), Doc: "How far a record's timestamp may lie in the broker's past, in milliseconds (CreateTime only)."},
	{Key: "message.timestamp.type", Type: String, Default: "CreateTime", Allowed: []string{"CreateTime", "LogAppendTime"}, brokerKeys: from("log.message.timestamp.type"), Doc: "Whose clock a record's timestamp is from: the producer's or the broker's."},
	{Key: "min.cleanable.dirty.ratio", Type: Double, Default: "0.5", Max: 1, brokerKeys: from("log.cleaner.min.cleanable.ratio"), Doc: "The share of not yet compacted bytes from which on a log is compacted."},
	{Key: "min.compaction.lag.ms", Type: Long, Default: "0", brokerKeys: from("log.cleaner.min.compaction.lag.ms"), Doc: "A record is left alone by compaction for this many milliseconds."},
	{Key: "min.insync.replicas", Type: Int, Default: "1", Min: 1, Max: maxInt, brokerKeys: from("min.insync.replicas"), Doc: "Replicas that must have a record before acks=all is answered; above the number of brokers producing with acks=all is refused."},
	{Key: "preallocate", Type: Boolean, Default: "false", brokerKeys: from("log.preallocate"), Doc: "Kept and given back; the journal's files are always allocated ahead."},
	{Key: "remote.storage.enable", Type: Boolean, Default: "false", Allowed: []string{"false"}, Doc: "There is no remote tier."},
	{Key: "remote.log.copy.disable", Type: Boolean, Default: "false", Doc: "Kept and given back; there is no remote tier."},
	{Key: "remote.log.delete.on.disable", Type: Boolean, Default: "false", Doc: "Kept and given back; there is no remote tier."},
	{Key: "retention.bytes", Type: Long, Default: "-1", Min: unlimited, brokerKeys: from("log.retention.bytes"), Doc: "The size that a partition is cut down to, in bytes; -1: no limit."},
	{Key: "retention.ms", Type: Long, Default: week, Min: unlimited, brokerKeys: []brokerKey{{"log.retention.ms", 1}, {"log.retention.minutes", 60_000}, {"log.retention.hours", hourMillis}}, Doc: "How long records are kept, in milliseconds; -1: for ever."},
	{Key: "segment.bytes", Type: Int, Default: aGibibyte, Min: 14, Max: maxInt, brokerKeys: from("log.segment.bytes"), Doc: "The largest run of a partition that retention and compaction treat as one, in bytes."},
	{Key: "segment.index.bytes", Type: Int, Default: "10485760", Min: 4, Max: maxInt, brokerKeys: from("log.index.size.max.bytes"), Doc: "Kept and given back; indexes grow with their data."},
	{Key: "segment.jitter.ms", Type: Long, Default: "0", brokerKeys: []brokerKey{{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", hourMillis}}, Doc: "Kept and given back; rolling costs no synced file of its own here."},
	{Key: "segment.ms", Type: Long, Default: week, Min: 1, brokerKeys: []brokerKey{{"log.roll.ms", 1}, {"log.roll.hours", hourMillis}}, Doc: "After this many milliseconds a run of a partition is closed, so that retention and compaction can work on it."},
	{Key: "unclean.leader.election.enable", Type: Boolean, Default: "false", brokerKeys: from("unclean.leader.election.enable"), Doc: "Kept and given back; one node elects nobody."},
})

func index(ds []Definition) map[string]*Definition {
	m := make(map[string]*Definition, len(ds))
	for i := range ds {
		m[ds[i].Key] = &ds[i]
	}
	return m
}

// Check tells whether value is one that the setting can have.
func (d *Definition) Check(value string) error {
	bad := func(want string) error {
		return model.Err(model.ClassInvalid, fmt.Sprintf("%s: %q is not %s", d.Key, value, want))
	}
	switch d.Type {
	case Boolean:
		if value != "true" && value != "false" {
			return bad("true or false")
		}
		if d.Allowed != nil && !slices.Contains(d.Allowed, value) {
			return model.Err(model.ClassInvalid, fmt.Sprintf("%s cannot be %s here: %s", d.Key, value, d.Doc))
		}
	case Int, Long:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || !d.inRange(float64(n)) {
			return bad("a whole number " + d.rangeText())
		}
	case Double:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || !d.inRange(f) {
			return bad("a number " + d.rangeText())
		}
	case String:
		if d.Allowed != nil && !slices.Contains(d.Allowed, value) {
			return bad("one of " + strings.Join(d.Allowed, ", "))
		}
		if d.check != nil {
			return d.check(value)
		}
	case List:
		for _, v := range splitList(value) {
			if d.Allowed != nil && !slices.Contains(d.Allowed, v) {
				return bad("a list of " + strings.Join(d.Allowed, ", "))
			}
		}
	}
	return nil
}

func (d *Definition) inRange(f float64) bool { return f >= d.Min && (d.Max == 0 || f <= d.Max) }

func (d *Definition) rangeText() string {
	if d.Max == 0 {
		return fmt.Sprintf("of at least %v", d.Min)
	}
	return fmt.Sprintf("from %v to %v", d.Min, d.Max)
}

// splitList reads a comma-separated list; an empty string is an empty list.
func splitList(s string) []string {
	var out []string
	for v := range strings.SplitSeq(s, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}
