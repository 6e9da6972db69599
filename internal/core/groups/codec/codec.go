// Package codec turns the groups' changes into the records of __consumer_offsets
// and back, in Kafka's own formats, so that tools that read the topic work.
package codec

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// Versions that are written. A key's version tells its kind.
const (
	offsetKeyVersion   = 1
	groupKeyVersion    = 2
	offsetValueVersion = 4 // flexible: the topic id is a tagged field
	groupValueVersion  = 3
)

// Offset is the record of a committed offset.
func Offset(group string, c offsets.Commit) statelog.Record {
	v := kmsg.NewOffsetCommitValue()
	v.Version = offsetValueVersion
	v.Offset, v.LeaderEpoch, v.Metadata = c.Offset.Offset, c.LeaderEpoch, c.Metadata
	v.CommitTimestamp, v.TopicID = c.At, c.TopicID
	if c.ExpireAt >= 0 {
		v.Version, v.ExpireTimestamp = 1, c.ExpireAt // the only version that has it
	}
	return statelog.Record{Key: offsetKey(group, c.Key), Value: v.AppendTo(nil)}
}

// NoOffset is the tombstone of an offset.
func NoOffset(group string, k offsets.Key) statelog.Record {
	return statelog.Record{Key: offsetKey(group, k)}
}

func offsetKey(group string, k offsets.Key) []byte {
	key := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: group, Topic: k.Topic, Partition: k.Partition}
	return key.AppendTo(nil)
}

// Group is the record of a classic group.
func Group(group string, s classic.Saved) statelog.Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupValueVersion
	v.ProtocolType, v.Generation = s.ProtocolType, s.Generation
	v.Protocol, v.Leader = nullable(s.Protocol), nullable(s.Leader)
	v.CurrentStateTimestamp = s.Since.UnixMilli()
	for _, m := range s.Members {
		vm := kmsg.NewGroupMetadataValueMember()
		vm.MemberID, vm.InstanceID = m.ID, nullable(m.Instance)
		vm.ClientID, vm.ClientHost = m.ClientID, m.ClientHost
		vm.RebalanceTimeoutMillis = int32(m.Rebalance.Milliseconds())
		vm.SessionTimeoutMillis = int32(m.Session.Milliseconds())
		vm.Subscription, vm.Assignment = m.Subscription, m.Assignment
		v.Members = append(v.Members, vm)
	}
	return statelog.Record{Key: groupKey(group), Value: v.AppendTo(nil)}
}

// NoGroup is the tombstone of a classic group.
func NoGroup(group string) statelog.Record { return statelog.Record{Key: groupKey(group)} }

func groupKey(group string) []byte {
	key := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: group}
	return key.AppendTo(nil)
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Change is a decoded record: an OffsetChange, a GroupChange or a ConsumerChange.
type Change interface{ change() }

// OffsetChange sets an offset, or deletes it when Offset is nil.
type OffsetChange struct {
	Group  string
	Key    offsets.Key
	Offset *offsets.Offset
}

// GroupChange sets a classic group, or deletes it when Saved is nil.
type GroupChange struct {
	Group string
	Saved *classic.Saved
}

func (OffsetChange) change() {}
func (GroupChange) change()  {}

// Decode reads a record; nil, nil for kinds that are not known: they are another
// version's, and harmless.
func Decode(r statelog.Record) (Change, error) {
	if len(r.Key) < 2 {
		return nil, corrupt("a key without a version", nil)
	}
	switch version := int16(binary.BigEndian.Uint16(r.Key)); version {
	case 0, offsetKeyVersion:
		return decodeOffset(r)
	case groupKeyVersion:
		return decodeGroup(r)
	case consumerGroupKey, consumerMemberKey, consumerTargetEpochKey, consumerTargetMemberKey, consumerCurrentKey:
		return decodeConsumer(version, r)
	default:
		return nil, nil
	}
}

func decodeOffset(r statelog.Record) (Change, error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(r.Key); err != nil {
		return nil, corrupt("offset key", err)
	}
	c := OffsetChange{Group: k.Group, Key: offsets.Key{Topic: k.Topic, Partition: k.Partition}}
	if r.Value == nil {
		return c, nil
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(r.Value); err != nil {
		return nil, corrupt("offset value", err)
	}
	o := offsets.Offset{
		Offset: v.Offset, LeaderEpoch: -1, Metadata: v.Metadata,
		At: v.CommitTimestamp, ExpireAt: -1, TopicID: model.TopicID(v.TopicID),
	}
	if v.Version >= 3 {
		o.LeaderEpoch = v.LeaderEpoch
	}
	if v.Version == 1 {
		o.ExpireAt = v.ExpireTimestamp
	}
	c.Offset = &o
	return c, nil
}

func decodeGroup(r statelog.Record) (Change, error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(r.Key); err != nil {
		return nil, corrupt("group key", err)
	}
	c := GroupChange{Group: k.Group}
	if r.Value == nil {
		return c, nil
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(r.Value); err != nil {
		return nil, corrupt("group value", err)
	}
	s := classic.Saved{
		ProtocolType: v.ProtocolType, Generation: v.Generation,
		Protocol: orEmpty(v.Protocol), Leader: orEmpty(v.Leader),
		Since: time.UnixMilli(max(v.CurrentStateTimestamp, 0)),
	}
	for _, m := range v.Members {
		rebalance := m.RebalanceTimeoutMillis
		if rebalance < 0 {
			rebalance = m.SessionTimeoutMillis
		}
		s.Members = append(s.Members, classic.SavedMember{
			ID: m.MemberID, Instance: orEmpty(m.InstanceID), ClientID: m.ClientID, ClientHost: m.ClientHost,
			Rebalance:    time.Duration(rebalance) * time.Millisecond,
			Session:      time.Duration(m.SessionTimeoutMillis) * time.Millisecond,
			Subscription: bytes.Clone(m.Subscription), Assignment: bytes.Clone(m.Assignment),
		})
	}
	c.Saved = &s
	return c, nil
}

func corrupt(what string, cause error) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "replay groups", Object: what, Cause: cause}
}
