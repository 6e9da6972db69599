package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/records"
)

// listOffset asks for one partition.
func listOffset(c *rawConn, topic string, index int32, ts int64, isolation int8, version int16) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = index, ts, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return call[*kmsg.ListOffsetsResponse](c, req, version).Topics[0].Partitions[0]
}

// TestRow19ListOffsets is also K01 of the reported cases.
func TestRow19ListOffsets(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	b.topic("empty", 1)
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 1, record{key: "a"}))
	produced(c, "t", 0, batch(t, records.Gzip, 5, record{key: "b"}, record{key: "c", ts: 4}, record{key: "d", ts: -2}))
	produced(c, "t", 0, batch(t, records.None, 2, record{key: "e"}))
	for _, tc := range []struct {
		name       string
		topic      string
		ts         int64
		version    int16
		offset, at int64
		code       codes.Code
	}{
		{"latest", "t", tsLatest, 1, 5, -1, 0},
		{"earliest", "t", tsEarliest, 1, 0, -1, 0},
		{"max timestamp", "t", tsMax, 7, 2, 9, 0},
		{"max timestamp of none", "empty", tsMax, 7, -1, -1, 0},
		{"earliest local", "t", tsEarliestLocal, 8, 0, -1, 0},
		{"latest tiered", "t", tsLatestTiered, 9, -1, -1, 0},
		{"earliest pending upload", "t", tsEarliestPending, 11, -1, -1, 0},
		{"exactly", "t", 5, 1, 1, 5, 0},
		{"between", "t", 6, 1, 2, 9, 0},
		{"first in offset order", "t", 2, 1, 1, 5, 0},
		{"K01: later than all", "t", 1000, 1, -1, -1, 0},
		{"K01: in an empty log", "empty", 0, 1, -1, -1, 0},
		{"max timestamp before its version", "t", tsMax, 6, -1, -1, codes.UnsupportedVersion},
		{"earliest local before its version", "t", tsEarliestLocal, 7, -1, -1, codes.UnsupportedVersion},
		{"pending before its version", "t", tsEarliestPending, 10, -1, -1, codes.UnsupportedVersion},
		{"no meaning", "t", -7, 11, -1, -1, codes.UnsupportedVersion},
		{"no topic", "missing", tsLatest, 5, -1, -1, codes.UnknownTopicOrPartition},
	} {
		p := listOffset(c, tc.topic, 0, tc.ts, 0, tc.version)
		if p.ErrorCode != tc.code || p.Offset != tc.offset || p.Timestamp != tc.at {
			t.Errorf("%s: error %d, offset %d, timestamp %d; want %d, %d, %d", tc.name, p.ErrorCode, p.Offset, p.Timestamp, tc.code, tc.offset, tc.at)
		}
	}
	for v := int16(1); v <= 11; v++ {
		if p := listOffset(c, "t", 0, tsLatest, 0, v); p.ErrorCode != 0 || p.Offset != 5 {
			t.Errorf("version %d: %+v", v, p)
		}
	}
}

func TestListOffsetsRefusesRepeatedPartitions(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	req := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = tsLatest
	topic.Partitions = append(topic.Partitions, p, p)
	req.Topics = append(req.Topics, topic)
	for _, p := range call[*kmsg.ListOffsetsResponse](b.dial(), req, 3).Topics[0].Partitions {
		if p.ErrorCode != codes.InvalidRequest {
			t.Errorf("error %d, want INVALID_REQUEST", p.ErrorCode)
		}
	}
}

func TestRow19AfterDeleteRecords(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	for range 3 {
		produced(c, "t", 0, batch(t, records.None, 7, record{key: "a"}))
	}
	deleteRecords(t, c, "t", 0, -1)
	for ts, want := range map[int64]int64{tsEarliest: 3, tsLatest: 3, 0: -1, tsMax: -1} {
		if p := listOffset(c, "t", 0, ts, 0, 8); p.ErrorCode != 0 || p.Offset != want {
			t.Errorf("timestamp %d: error %d, offset %d, want %d", ts, p.ErrorCode, p.Offset, want)
		}
	}
}

func deleteRecords(t *testing.T, c *rawConn, topic string, index int32, before int64) kmsg.DeleteRecordsResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = index, before
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return call[*kmsg.DeleteRecordsResponse](c, req, 2).Topics[0].Partitions[0]
}

func TestRow20OffsetForLeaderEpoch(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	produced(b.dial(), "t", 0, batch(t, records.None, 1, values("x", "y")...))
	first := b.epoch("t")
	b.restart()
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 1, values("z")...))
	second := b.epoch("t")
	if second <= first {
		t.Fatalf("leader epoch %d after %d", second, first)
	}
	for _, tc := range []struct {
		name           string
		topic          string
		current, asked int32
		epoch          int32
		end            int64
		code           codes.Code
	}{
		{"older", "t", second, first, first, 2, 0},
		{"newest", "t", -1, second, second, 3, 0},
		{"above known", "t", -1, second + 1, -1, -1, 0},
		{"fenced", "t", first, first, -1, -1, codes.FencedLeaderEpoch},
		{"from the future", "t", second + 1, first, -1, -1, codes.UnknownLeaderEpoch},
		{"missing", "missing", -1, 0, -1, -1, codes.UnknownTopicOrPartition},
	} {
		for v := int16(2); v <= 4; v++ {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.ReplicaID = -1
			rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
			rt.Topic = tc.topic
			rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			rp.CurrentLeaderEpoch, rp.LeaderEpoch = tc.current, tc.asked
			rt.Partitions = append(rt.Partitions, rp)
			req.Topics = append(req.Topics, rt)
			p := call[*kmsg.OffsetForLeaderEpochResponse](c, req, v).Topics[0].Partitions[0]
			if p.ErrorCode != tc.code || p.LeaderEpoch != tc.epoch || p.EndOffset != tc.end {
				t.Errorf("%s, version %d: %+v", tc.name, v, p)
			}
		}
	}
}

func (b *broker) epoch(topic string) int32 {
	t, _ := b.topics.ByName(topic)
	return t.Partitions[0].LeaderEpoch()
}
