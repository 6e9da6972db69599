package codec

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// cases are records of every kind with what they mean.
func cases() map[string]struct {
	record statelog.Record
	change Change
} {
	key := offsets.Key{Topic: "orders", Partition: 3}
	offset := offsets.Offset{Offset: 42, LeaderEpoch: 5, Metadata: "note", At: 1_700_000_000_000, ExpireAt: -1, TopicID: model.TopicID{1}}
	expiring := offsets.Offset{Offset: 42, LeaderEpoch: -1, At: 1_700_000_000_000, ExpireAt: 1_700_000_001_000}
	saved := classic.Saved{
		ProtocolType: "consumer", Generation: 7, Protocol: "range", Leader: "a", Since: time.UnixMilli(1_700_000_000_000),
		Members: []classic.SavedMember{{
			ID: "a", Instance: "i", ClientID: "c", ClientHost: "/1.1.1.1", Rebalance: time.Minute, Session: 10 * time.Second,
			Subscription: []byte{1}, Assignment: []byte{2},
		}},
	}
	ps := consumer.Partitions{model.TopicID{1}: {0, 5}, model.TopicID{2}: {1}}
	member := consumer.Member{
		ID: "m", Instance: "i", Rack: "r", ClientID: "c", ClientHost: "/1.1.1.1", Rebalance: time.Minute,
		Topics: []string{"t", "u"}, Pattern: "a.*", Assignor: "range",
	}
	old := consumer.Member{
		ID: "m", ClientID: "c", ClientHost: "/1.1.1.1",
		Classic: &consumer.ClassicMember{Session: time.Second, Protocols: []classic.Protocol{{Name: "range", Metadata: []byte{9}}}},
	}
	set := func(c consumer.Change) struct {
		record statelog.Record
		change Change
	} {
		return struct {
			record statelog.Record
			change Change
		}{Consumer("g", c), ConsumerChange{"g", c}}
	}
	return map[string]struct {
		record statelog.Record
		change Change
	}{
		"offset":          {Offset("g", offsets.Commit{Key: key, Offset: offset}), OffsetChange{"g", key, &offset}},
		"expiring offset": {Offset("g", offsets.Commit{Key: key, Offset: expiring}), OffsetChange{"g", key, &expiring}},
		"no offset":       {NoOffset("g", key), OffsetChange{"g", key, nil}},
		"group":           {Group("g", saved), GroupChange{"g", &saved}},
		"no group":        {NoGroup("g"), GroupChange{"g", nil}},
		"consumer group":  set(consumer.SetGroup{Epoch: 3, Hash: 1 << 63}),
		"no consumer":     set(consumer.SetGroup{}),
		"target epoch":    set(consumer.SetTargetEpoch{Epoch: 3}),
		"no target epoch": set(consumer.SetTargetEpoch{}),
		"member":          set(consumer.SetMember{ID: "m", Member: &member}),
		"classic member":  set(consumer.SetMember{ID: "m", Member: &old}),
		"no member":       set(consumer.SetMember{ID: "m"}),
		"target":          set(consumer.SetTarget{ID: "m", Target: ps}),
		"empty target":    set(consumer.SetTarget{ID: "m", Target: consumer.Partitions{}}),
		"no target":       set(consumer.SetTarget{ID: "m"}),
		"current":         set(consumer.SetCurrent{ID: "m", Current: &consumer.Current{Epoch: 3, Previous: 2, State: consumer.Unrevoked, Assigned: ps, Revoking: consumer.Partitions{}}}),
		"left for now":    set(consumer.SetCurrent{ID: "m", Current: &consumer.Current{Epoch: -2, Previous: 2, State: consumer.Settled, Assigned: ps, Revoking: consumer.Partitions{}}}),
		"no current":      set(consumer.SetCurrent{ID: "m"}),
	}
}

func TestRoundTrip(t *testing.T) {
	for name, tc := range cases() {
		got, err := Decode(tc.record)
		if err != nil || !reflect.DeepEqual(got, tc.change) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, tc.change)
		}
	}
}

// TestBytes holds records to Kafka's own formats: the bytes are what the message
// definitions of OffsetCommit, GroupMetadata and ConsumerGroup… give.
func TestBytes(t *testing.T) {
	want := map[string][2]string{
		"no offset": {"0001" + "0001" + "67" + "0006" + "6f7264657273" + "00000003", ""},
		"offset": {
			"0001" + "0001" + "67" + "0006" + "6f7264657273" + "00000003",
			"0004" + "000000000000002a" + "00000005" + "05" + "6e6f7465" + "0000018bcfe56800" + "01" + "00" + "10" + "01000000000000000000000000000000",
		},
		"no group":       {"0002" + "0001" + "67", ""},
		"consumer group": {"0003" + "0001" + "67", "0000" + "00000003" + "01" + "00" + "08" + "8000000000000000"},
		"target epoch":   {"0006" + "0001" + "67", "0000" + "00000003" + "00"},
		"member": {
			"0005" + "0001" + "67" + "0001" + "6d",
			"0000" + "0269" + "0272" + "0263" + "092f312e312e312e31" + "03" + "0274" + "0275" + "04612e2a" + "0000ea60" + "0672616e6765" + "00",
		},
		"classic member": {
			"0005" + "0001" + "67" + "0001" + "6d",
			"0000" + "00" + "00" + "0263" + "092f312e312e312e31" + "01" + "00" + "00000000" + "00" +
				"01" + "00" + "10" + "01" + "000003e8" + "02" + "0672616e6765" + "0209" + "00" + "00",
		},
		"target": {
			"0007" + "0001" + "67" + "0001" + "6d",
			"0000" + "03" + "01000000000000000000000000000000" + "03" + "00000000" + "00000005" + "00" +
				"02000000000000000000000000000000" + "02" + "00000001" + "00" + "00",
		},
		"left for now": {
			"0008" + "0001" + "67" + "0001" + "6d",
			"0000" + "fffffffe" + "00000002" + "01" + "03" + "01000000000000000000000000000000" + "03" + "00000000" + "00000005" + "00" +
				"02000000000000000000000000000000" + "02" + "00000001" + "00" + "01" + "00",
		},
	}
	all := cases()
	for name, w := range want {
		r := all[name].record
		if key, value := hex.EncodeToString(r.Key), hex.EncodeToString(r.Value); key != w[0] || value != w[1] {
			t.Errorf("%s:\n key   %s\n want  %s\n value %s\n want  %s", name, key, w[0], value, w[1])
		}
	}
}

func TestUnknownKindsArePassedOver(t *testing.T) {
	for _, key := range []string{"\x00\x04g", "\x00\x10", "\x7f\xff"} {
		if c, err := Decode(statelog.Record{Key: []byte(key), Value: []byte{1}}); c != nil || err != nil {
			t.Errorf("key %q: %v %v", key, c, err)
		}
	}
	if _, err := Decode(statelog.Record{Key: []byte{0}}); model.ClassOf(err) != model.ClassCorrupt {
		t.Errorf("short key: %v", err)
	}
}

// FuzzDecode: any bytes decode to an error, nothing, or a change that encodes to
// bytes which decode to the same change.
func FuzzDecode(f *testing.F) {
	for _, tc := range cases() {
		f.Add(tc.record.Key, tc.record.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(value) == 0 {
			value = nil
		}
		c, err := Decode(statelog.Record{Key: key, Value: value})
		if c == nil || err != nil {
			return
		}
		var again statelog.Record
		switch c := c.(type) {
		case OffsetChange:
			if c.Offset == nil {
				again = NoOffset(c.Group, c.Key)
				break
			}
			if c.Offset.ExpireAt >= 0 {
				c.Offset.TopicID = model.TopicID{}
			} else if c.Offset.ExpireAt < -1 {
				return
			}
			again = Offset(c.Group, offsets.Commit{Key: c.Key, Offset: *c.Offset})
		case GroupChange:
			if c.Saved == nil {
				again = NoGroup(c.Group)
			} else {
				again = Group(c.Group, *c.Saved)
			}
		case ConsumerChange:
			again = Consumer(c.Group, c.Change)
		}
		d, err := Decode(again)
		if err != nil || !reflect.DeepEqual(c, d) {
			t.Errorf("%+v\nthen %+v, %v", c, d, err)
		}
	})
}
