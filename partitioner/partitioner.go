// Package partitioner chooses partitions for records on their way to a Kafka
// topic: by key exactly as Kafka's own clients do, by ranges of keys, or by any
// attribute of the record. Each partitioner is a kgo.Partitioner for franz-go, and
// a plain function for everybody else. The package talks to no broker.
package partitioner

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Murmur2 is the hash of Kafka's default partitioner (32-bit MurmurHash2 with
// Kafka's seed). Java prints it as a signed number.
func Murmur2(key []byte) uint32 {
	const seed, m, r = 0x9747b28c, 0x5bd1e995, 24
	h := uint32(seed) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key)
		k *= m
		k ^= k >> r
		h = h*m ^ k*m
	}
	for i := len(key) - 1; i >= 0; i-- {
		h ^= uint32(key[i]) << (8 * i)
	}
	if len(key) > 0 {
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// ForKey is the partition, of n, of a record with this key: the same for every
// client of Kafka that hashes as Java's does (librdkafka: murmur2_random). It
// panics unless n is positive.
func ForKey(key []byte, n int) int { return int(Murmur2(key)&0x7fffffff) % n }

// ByKey sends records with a key to ForKey's partition, and those without one to
// a partition that stays the same for a batch (KIP-480).
func ByKey() kgo.Partitioner { return kgo.StickyKeyPartitioner(kgo.KafkaHasher(Murmur2)) }

// Range divides keys, ordered as bytes, into ranges: keys below the first split go
// to partition 0, keys from the i-th split on to partition i.
type Range struct{ splits [][]byte }

// NewRange makes a Range of len(splits)+1 partitions. Splits must ascend.
func NewRange(splits ...[]byte) (*Range, error) {
	for i := 1; i < len(splits); i++ {
		if bytes.Compare(splits[i-1], splits[i]) >= 0 {
			return nil, fmt.Errorf("split %d (%q) does not come after %q; splits must ascend", i, splits[i], splits[i-1])
		}
	}
	return &Range{splits}, nil
}

// LearnRange makes a Range of at most n partitions from sample keys, so that the
// samples spread evenly. Frequent keys count as often as they occur; with fewer
// distinct keys than partitions there are fewer ranges.
func LearnRange(samples [][]byte, n int) (*Range, error) {
	if n < 1 || len(samples) == 0 {
		return nil, fmt.Errorf("%d partitions from %d samples: give at least one of each", n, len(samples))
	}
	sorted := slices.SortedFunc(slices.Values(samples), bytes.Compare)
	var splits [][]byte
	for i := 1; i < n; i++ {
		at := sorted[i*len(sorted)/n]
		if bytes.Equal(at, sorted[0]) || len(splits) > 0 && bytes.Equal(at, splits[len(splits)-1]) {
			continue
		}
		splits = append(splits, at)
	}
	return NewRange(splits...)
}

// Partitions is the number of ranges.
func (r *Range) Partitions() int { return len(r.splits) + 1 }

// Splits are the first keys of the partitions from 1 on.
func (r *Range) Splits() [][]byte { return slices.Clone(r.splits) }

// ForKey is the partition of the range that key lies in.
func (r *Range) ForKey(key []byte) int {
	i, found := slices.BinarySearchFunc(r.splits, key, bytes.Compare)
	if found {
		i++
	}
	return i
}

// Partitioner sends each record to its key's range. A topic with fewer partitions
// than ranges gets the ranges beyond its last partition there.
func (r *Range) Partitioner() kgo.Partitioner {
	return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(rec *kgo.Record, n int) int { return min(r.ForKey(rec.Key), n-1) }
	})
}

// ByAttribute sends records to the partition that table gives for their attribute
// (a region, a tenant: what attribute returns). Records whose attribute has no
// entry, or one that the topic does not have, go where fallback says.
func ByAttribute(attribute func(*kgo.Record) string, table map[string]int, fallback kgo.Partitioner) kgo.Partitioner {
	return &byAttribute{attribute, table, fallback}
}

type byAttribute struct {
	attribute func(*kgo.Record) string
	table     map[string]int
	fallback  kgo.Partitioner
}

// ForTopic implements kgo.Partitioner.
func (b *byAttribute) ForTopic(topic string) kgo.TopicPartitioner {
	return &attributeTopic{b, b.fallback.ForTopic(topic)}
}

type attributeTopic struct {
	*byAttribute
	next kgo.TopicPartitioner
}

// RequiresConsistency implements kgo.TopicPartitioner.
func (t *attributeTopic) RequiresConsistency(r *kgo.Record) bool {
	_, ok := t.table[t.attribute(r)]
	return ok || t.next.RequiresConsistency(r)
}

// Partition implements kgo.TopicPartitioner.
func (t *attributeTopic) Partition(r *kgo.Record, n int) int {
	if p, ok := t.table[t.attribute(r)]; ok && p >= 0 && p < n {
		return p
	}
	return t.next.Partition(r, n)
}

// OnNewBatch passes the end of a batch on, for fallbacks that stick to a partition.
func (t *attributeTopic) OnNewBatch() {
	if s, ok := t.next.(kgo.TopicPartitionerOnNewBatch); ok {
		s.OnNewBatch()
	}
}
