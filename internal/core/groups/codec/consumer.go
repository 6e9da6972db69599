package codec

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// Key versions of the records of groups of the consumer protocol (KIP-848), which
// tell their kinds. Their values are version 0 and flexible.
const (
	consumerGroupKey        = 3
	consumerMemberKey       = 5
	consumerTargetEpochKey  = 6
	consumerTargetMemberKey = 7
	consumerCurrentKey      = 8
)

// Tags of optional fields.
const (
	tagClassicMember = 0 // of a member: what it has as one of the classic protocol
	tagMetadataHash  = 0 // of a group: the hash of the topics that it consumes
)

// ConsumerChange is a change of a group of the consumer protocol.
type ConsumerChange struct {
	Group  string
	Change consumer.Change
}

func (ConsumerChange) change() {}

// Consumer is the record of a change.
func Consumer(group string, c consumer.Change) statelog.Record {
	switch c := c.(type) {
	case consumer.SetGroup:
		if c.Epoch == 0 {
			return statelog.Record{Key: consumerKey(consumerGroupKey, group)}
		}
		v := kbin.AppendInt32([]byte{0, 0}, c.Epoch)
		v = append(v, 1, tagMetadataHash, 8)
		return statelog.Record{Key: consumerKey(consumerGroupKey, group), Value: kbin.AppendInt64(v, int64(c.Hash))}
	case consumer.SetTargetEpoch:
		if c.Epoch == 0 {
			return statelog.Record{Key: consumerKey(consumerTargetEpochKey, group)}
		}
		return statelog.Record{Key: consumerKey(consumerTargetEpochKey, group), Value: append(kbin.AppendInt32([]byte{0, 0}, c.Epoch), 0)}
	case consumer.SetMember:
		return statelog.Record{Key: memberKey(consumerMemberKey, group, c.ID), Value: appendMember(c.Member)}
	case consumer.SetTarget:
		r := statelog.Record{Key: memberKey(consumerTargetMemberKey, group, c.ID)}
		if c.Target != nil {
			r.Value = append(appendPartitions([]byte{0, 0}, c.Target), 0)
		}
		return r
	case consumer.SetCurrent:
		r := statelog.Record{Key: memberKey(consumerCurrentKey, group, c.ID)}
		if cur := c.Current; cur != nil {
			v := kbin.AppendInt32(kbin.AppendInt32([]byte{0, 0}, cur.Epoch), cur.Previous)
			v = append(v, byte(cur.State))
			r.Value = append(appendPartitions(appendPartitions(v, cur.Assigned), cur.Revoking), 0)
		}
		return r
	}
	panic("a change without a record") // the kinds are above
}

func consumerKey(version int16, group string) []byte {
	return kbin.AppendString(kbin.AppendInt16(nil, version), group)
}

func memberKey(version int16, group, member string) []byte {
	return kbin.AppendString(consumerKey(version, group), member)
}

func appendPartitions(dst []byte, ps consumer.Partitions) []byte {
	dst = kbin.AppendCompactArrayLen(dst, len(ps))
	for _, id := range ps.Topics() {
		dst = append(dst, id[:]...)
		dst = kbin.AppendCompactArrayLen(dst, len(ps[id]))
		for _, p := range ps[id] {
			dst = kbin.AppendInt32(dst, p)
		}
		dst = append(dst, 0)
	}
	return dst
}

func appendMember(m *consumer.Member) []byte {
	if m == nil {
		return nil
	}
	v := kbin.AppendCompactNullableString([]byte{0, 0}, nullable(m.Instance))
	v = kbin.AppendCompactNullableString(v, nullable(m.Rack))
	v = kbin.AppendCompactString(v, m.ClientID)
	v = kbin.AppendCompactString(v, m.ClientHost)
	v = kbin.AppendCompactArrayLen(v, len(m.Topics))
	for _, t := range m.Topics {
		v = kbin.AppendCompactString(v, t)
	}
	v = kbin.AppendCompactNullableString(v, nullable(m.Pattern))
	v = kbin.AppendInt32(v, int32(m.Rebalance.Milliseconds()))
	v = kbin.AppendCompactNullableString(v, nullable(m.Assignor))
	if m.Classic == nil {
		return append(v, 0)
	}
	// A nullable struct begins with a byte that says that it is there.
	c := kbin.AppendInt32([]byte{1}, int32(m.Classic.Session.Milliseconds()))
	c = kbin.AppendCompactArrayLen(c, len(m.Classic.Protocols))
	for _, p := range m.Classic.Protocols {
		c = kbin.AppendCompactString(c, p.Name)
		c = append(kbin.AppendCompactBytes(c, p.Metadata), 0)
	}
	c = append(c, 0)
	v = kbin.AppendUvarint(append(v, 1, tagClassicMember), uint32(len(c)))
	return append(v, c...)
}

func decodeConsumer(version int16, r statelog.Record) (Change, error) {
	k := kbin.Reader{Src: r.Key[2:]}
	c := ConsumerChange{Group: k.String()}
	member := ""
	if version != consumerGroupKey && version != consumerTargetEpochKey {
		member = k.String()
	}
	if err := k.Complete(); err != nil {
		return nil, corrupt("key of a consumer group", err)
	}
	v := &kbin.Reader{Src: r.Value}
	if r.Value != nil && v.Int16() != 0 {
		return nil, corrupt("value of a consumer group", errors.New("not version 0"))
	}
	c.Change = readChange(version, member, v, r.Value == nil)
	if err := v.Complete(); err != nil {
		return nil, corrupt("value of a consumer group", err)
	}
	return c, nil
}

func readChange(version int16, member string, v *kbin.Reader, gone bool) consumer.Change {
	switch version {
	case consumerGroupKey:
		if gone {
			return consumer.SetGroup{}
		}
		c := consumer.SetGroup{Epoch: v.Int32()}
		readTags(v, func(tag uint32, t *kbin.Reader) {
			if tag == tagMetadataHash {
				c.Hash = uint64(t.Int64())
			}
		})
		return c
	case consumerTargetEpochKey:
		if gone {
			return consumer.SetTargetEpoch{}
		}
		c := consumer.SetTargetEpoch{Epoch: v.Int32()}
		readTags(v, nil)
		return c
	case consumerMemberKey:
		if gone {
			return consumer.SetMember{ID: member}
		}
		return consumer.SetMember{ID: member, Member: readMember(member, v)}
	case consumerTargetMemberKey:
		if gone {
			return consumer.SetTarget{ID: member}
		}
		c := consumer.SetTarget{ID: member, Target: readPartitions(v)}
		readTags(v, nil)
		return c
	default:
		if gone {
			return consumer.SetCurrent{ID: member}
		}
		c := consumer.Current{Epoch: v.Int32(), Previous: v.Int32(), State: consumer.MemberState(v.Int8())}
		c.Assigned = readPartitions(v)
		c.Revoking = readPartitions(v)
		readTags(v, nil)
		return consumer.SetCurrent{ID: member, Current: &c}
	}
}

// readTags reads tagged fields; those that f does not know are passed over.
func readTags(v *kbin.Reader, f func(tag uint32, t *kbin.Reader)) {
	for n := v.Uvarint(); n > 0 && v.Ok(); n-- {
		tag := v.Uvarint()
		body := v.Span(int(v.Uvarint()))
		if f != nil && v.Ok() {
			f(tag, &kbin.Reader{Src: body})
		}
	}
}

func readPartitions(v *kbin.Reader) consumer.Partitions {
	m := map[model.TopicID][]int32{}
	for n := v.CompactArrayLen(); n > 0 && v.Ok(); n-- {
		id := model.TopicID(v.Uuid())
		for k := v.CompactArrayLen(); k > 0 && v.Ok(); k-- {
			m[id] = append(m[id], v.Int32())
		}
		readTags(v, nil)
	}
	return consumer.Clean(m)
}

func readMember(id string, v *kbin.Reader) *consumer.Member {
	m := &consumer.Member{
		ID: id, Instance: orEmpty(v.CompactNullableString()), Rack: orEmpty(v.CompactNullableString()),
		ClientID: v.CompactString(), ClientHost: v.CompactString(),
	}
	for n := v.CompactArrayLen(); n > 0 && v.Ok(); n-- {
		m.Topics = append(m.Topics, v.CompactString())
	}
	m.Pattern = orEmpty(v.CompactNullableString())
	m.Rebalance = time.Duration(v.Int32()) * time.Millisecond
	m.Assignor = orEmpty(v.CompactNullableString())
	readTags(v, func(tag uint32, t *kbin.Reader) {
		if tag == tagClassicMember && t.Int8() == 1 {
			c := &consumer.ClassicMember{Session: time.Duration(t.Int32()) * time.Millisecond}
			for n := t.CompactArrayLen(); n > 0 && t.Ok(); n-- {
				c.Protocols = append(c.Protocols, classic.Protocol{Name: t.CompactString(), Metadata: append([]byte{}, t.CompactBytes()...)})
				readTags(t, nil)
			}
			m.Classic = c
		}
	})
	return m
}
