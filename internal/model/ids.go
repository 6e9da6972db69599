// Package model holds the nouns that every other package shares: identifiers,
// offsets, the record batch view and the error classes. It imports nothing of
// Daybook's and starts nothing.
package model

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"
)

// Offset is a position in one partition, counted in records (Kafka's offset).
type Offset int64

// LSN numbers the journal's frames, from 1, without gaps.
type LSN uint64

// FileID names a data file (journal file or segment). It is never reused.
type FileID uint64

// TopicID identifies a topic for its whole life; a topic that is deleted and
// created again has another one (KIP-516).
type TopicID [16]byte

// String gives the URL-safe base64 form that Kafka's tools print.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// IsZero reports whether no topic is named.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// ParseTopicID reads the form that TopicID.String prints.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic id %q is not 22 characters of URL-safe base64", s)
	}
	copy(id[:], b)
	return id, nil
}

// PartitionID names one partition of one topic.
type PartitionID struct {
	Topic TopicID
	Index int32
}

// String is for logs: topic id, dash, index.
func (p PartitionID) String() string {
	return p.Topic.String() + "-" + strconv.Itoa(int(p.Index))
}

// Compare orders partitions; locks over several partitions are taken in this order.
func (p PartitionID) Compare(q PartitionID) int {
	if c := bytes.Compare(p.Topic[:], q.Topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(p.Index, q.Index)
}
