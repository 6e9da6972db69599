package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

// sharer is a member of a share group, request by request.
type sharer struct {
	*rawConn
	group, member string
	epoch         int32
	topic         *topics.Topic
}

func (b *broker) sharer(group, member string, t *topics.Topic) *sharer {
	s := &sharer{rawConn: b.dial(), group: group, member: member, topic: t}
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.SubscribedTopicNames = group, member, []string{t.Name}
	if resp := call[*kmsg.ShareGroupHeartbeatResponse](s.rawConn, req, 1); resp.ErrorCode != 0 || resp.Assignment == nil {
		b.t.Fatalf("join: %+v", resp)
	}
	return s
}

// ack is one range and its acknowledge types.
type ack struct {
	first, last int64
	types       []int8
}

func (s *sharer) fetchRequest(acks ...ack) *kmsg.ShareFetchRequest {
	req := kmsg.NewPtrShareFetchRequest()
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &s.group, &s.member, s.epoch
	req.MaxBytes, req.MaxRecords, req.MaxWaitMillis = 1<<20, 100, 200
	req.ShareAcquireMode = 1
	t := kmsg.NewShareFetchRequestTopic()
	t.TopicID = s.topic.ID
	p := kmsg.NewShareFetchRequestTopicPartition()
	for _, a := range acks {
		p.AcknowledgementBatches = append(p.AcknowledgementBatches, kmsg.ShareFetchRequestTopicPartitionAcknowledgementBatch{FirstOffset: a.first, LastOffset: a.last, AcknowledgeTypes: a.types})
	}
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// fetch sends a request of the session and gives the partition's answer.
func (s *sharer) fetch(req *kmsg.ShareFetchRequest) (*kmsg.ShareFetchResponse, kmsg.ShareFetchResponseTopicPartition) {
	s.t.Helper()
	resp := call[*kmsg.ShareFetchResponse](s.rawConn, req, 2)
	if resp.ErrorCode == 0 {
		s.epoch++
	}
	if len(resp.Topics) == 0 {
		return resp, kmsg.ShareFetchResponseTopicPartition{}
	}
	return resp, resp.Topics[0].Partitions[0]
}

// acquired prints what was acquired: first-last×count.
func acquired(p kmsg.ShareFetchResponseTopicPartition) (out string) {
	for _, a := range p.AcquiredRecords {
		out += fmt.Sprintf("%d-%d×%d ", a.FirstOffset, a.LastOffset, a.DeliveryCount)
	}
	return out
}

func (b *broker) setGroup(group string, settings ...string) {
	b.t.Helper()
	var ops []topics.ConfigOp
	for i := 0; i < len(settings); i += 2 {
		ops = append(ops, topics.ConfigOp{Key: settings[i], Value: settings[i+1]})
	}
	if err := b.topics.AlterGroup(context.Background(), group, ops, false); err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) produceN(topic string, n int) {
	b.t.Helper()
	cl := b.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range n {
		r := &kgo.Record{Topic: topic, Key: fmt.Append(nil, "k", i%2), Value: fmt.Append(nil, "v", i)}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestShareGroupSettlesAndReleases(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 1)
	b.setGroup("g", "share.auto.offset.reset", "earliest")
	b.produceN("t", 6)
	s := b.sharer("g", "m1", topic)
	if _, p := s.fetch(s.fetchRequest()); acquired(p) != "0-0×1 1-1×1 2-2×1 3-3×1 4-4×1 5-5×1 " || len(p.Records) == 0 {
		t.Fatal(acquired(p), p.ErrorCode)
	}
	// Accept 0 and 1, release 2, reject 3, and 4 by a list of types; 5 stays.
	_, p := s.fetch(s.fetchRequest(ack{0, 1, []int8{1}}, ack{2, 4, []int8{2, 3, 1}}))
	if p.AcknowledgeErrorCode != 0 || acquired(p) != "2-2×2 " {
		t.Fatal(acquired(p), p.AcknowledgeErrorCode)
	}
	other := b.sharer("g", "m2", topic)
	req := other.fetchRequest()
	req.MaxWaitMillis = 0
	if _, p := other.fetch(req); acquired(p) != "" {
		t.Fatalf("records of another member were delivered: %s", acquired(p))
	}
	// The first member's connection breaks: what it held comes to the second.
	_ = s.Close()
	req = other.fetchRequest()
	req.MaxWaitMillis = 5000
	if _, p := other.fetch(req); acquired(p) != "2-2×3 5-5×2 " {
		t.Fatal(acquired(p))
	}
}

func TestShareSessionsAndBadAcknowledgements(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 1)
	b.setGroup("g", "share.auto.offset.reset", "earliest")
	b.produceN("t", 2)
	s := b.sharer("g", "m", topic)
	expect := func(what string, got, want codes.Code) {
		t.Helper()
		if got != want {
			t.Errorf("%s: code %d, want %d", what, got, want)
		}
	}
	req := s.fetchRequest(ack{0, 0, []int8{1}})
	resp, _ := s.fetch(req)
	expect("acknowledging in the first request", resp.ErrorCode, codes.InvalidRequest)
	s.epoch = 3
	resp, _ = s.fetch(s.fetchRequest())
	expect("no session", resp.ErrorCode, codes.ShareSessionNotFound)
	s.epoch = 0
	s.fetch(s.fetchRequest())
	s.epoch = 7
	resp, _ = s.fetch(s.fetchRequest())
	expect("wrong epoch", resp.ErrorCode, codes.InvalidShareSessionEpoch)
	s.epoch = 1
	for _, c := range []struct {
		what string
		ack  ack
		want codes.Code
	}{
		{"what is not held", ack{5, 5, []int8{1}}, codes.InvalidRecordState},
		{"range backwards", ack{1, 0, []int8{1}}, codes.InvalidRequest},
		{"negative offset", ack{-4, 0, []int8{1}}, codes.InvalidRequest},
		{"absurd range", ack{0, 1 << 62, []int8{1}}, codes.InvalidRecordState},
		{"types do not fit", ack{0, 1, []int8{1, 1, 1}}, codes.InvalidRequest},
		{"unknown type", ack{0, 0, []int8{9}}, codes.InvalidRequest},
		{"renewal without saying so", ack{0, 0, []int8{4}}, codes.InvalidRequest},
	} {
		req := s.fetchRequest(c.ack)
		req.MaxWaitMillis = 0
		_, p := s.fetch(req)
		expect(c.what, p.AcknowledgeErrorCode, c.want)
	}
	renew := s.fetchRequest(ack{0, 1, []int8{4}})
	renew.IsRenewAck, renew.MaxBytes, renew.MaxRecords, renew.MaxWaitMillis, renew.MinBytes = true, 0, 0, 0, 0
	_, p := s.fetch(renew)
	expect("renewal", p.AcknowledgeErrorCode, codes.None)
	ackReq := kmsg.NewPtrShareAcknowledgeRequest()
	ackReq.GroupID, ackReq.MemberID, ackReq.ShareSessionEpoch = &s.group, &s.member, s.epoch
	at := kmsg.NewShareAcknowledgeRequestTopic()
	at.TopicID = topic.ID
	ap := kmsg.NewShareAcknowledgeRequestTopicPartition()
	ap.AcknowledgementBatches = append(ap.AcknowledgementBatches, kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch{FirstOffset: 0, LastOffset: 1, AcknowledgeTypes: []int8{1}})
	at.Partitions = append(at.Partitions, ap)
	ackReq.Topics = append(ackReq.Topics, at)
	a := call[*kmsg.ShareAcknowledgeResponse](s.rawConn, ackReq, 2)
	expect("acknowledge", a.Topics[0].Partitions[0].ErrorCode, codes.None)
	s.epoch++
	ackReq.ShareSessionEpoch = s.epoch
	a = call[*kmsg.ShareAcknowledgeResponse](s.rawConn, ackReq, 2)
	expect("acknowledge twice", a.Topics[0].Partitions[0].ErrorCode, codes.InvalidRecordState)
	s.epoch = -1
	resp, _ = s.fetch(s.fetchRequest())
	expect("close", resp.ErrorCode, codes.None)
}

func TestShareGroupHeartbeatRefusals(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 1)
	s := b.sharer("g", "m", topic)
	beat := func(group, member string, epoch int32, names []string) codes.Code {
		req := kmsg.NewPtrShareGroupHeartbeatRequest()
		req.GroupID, req.MemberID, req.MemberEpoch, req.SubscribedTopicNames = group, member, epoch, names
		return call[*kmsg.ShareGroupHeartbeatResponse](s.rawConn, req, 1).ErrorCode
	}
	for _, c := range []struct {
		what  string
		group string
		m     string
		epoch int32
		names []string
		want  codes.Code
	}{
		{"no group", "", "m", 0, []string{"t"}, codes.InvalidRequest},
		{"no member", "g", "", 0, []string{"t"}, codes.InvalidRequest},
		{"first without topics", "g", "n", 0, nil, codes.InvalidRequest},
		{"strange epoch", "g", "m", -2, nil, codes.InvalidRequest},
		{"unknown member", "g", "n", 4, nil, codes.UnknownMemberID},
		{"unknown group", "x", "n", 4, nil, codes.UnknownMemberID},
		{"epoch of the future", "g", "m", 9, nil, codes.FencedMemberEpoch},
		{"stays", "g", "m", 1, nil, codes.None},
		{"leaves", "g", "m", -1, nil, codes.None},
		{"leaves again", "g", "m", -1, nil, codes.UnknownMemberID},
	} {
		if got := beat(c.group, c.m, c.epoch, c.names); got != c.want {
			t.Errorf("%s: code %d, want %d", c.what, got, c.want)
		}
	}
}

// A dead record goes to the group's dead-letter topic with KIP-1191's headers.
func TestShareGroupDeadLetters(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 1)
	b.topic("dlq.t", 1, "errors.deadletterqueue.group.enable", "true")
	b.setGroup("g", "share.auto.offset.reset", "earliest", "errors.deadletterqueue.topic.name", "dlq.t", "errors.deadletterqueue.copy.record.enable", "true")
	b.produceN("t", 1)
	s := b.sharer("g", "m", topic)
	s.fetch(s.fetchRequest())
	req := s.fetchRequest(ack{0, 0, []int8{3}})
	req.MaxWaitMillis = 0
	if _, p := s.fetch(req); p.AcknowledgeErrorCode != 0 {
		t.Fatal(p.AcknowledgeErrorCode)
	}
	cl := b.client(kgo.ConsumeTopics("dlq.t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	recs := cl.PollFetches(ctx).Records()
	if len(recs) != 1 || string(recs[0].Value) != "v0" || string(recs[0].Key) != "k0" {
		t.Fatalf("dead letters: %v", recs)
	}
	got := map[string]string{}
	for _, h := range recs[0].Headers {
		got[h.Key] = string(h.Value)
	}
	want := map[string]string{
		"__dlq.errors.topic": "t", "__dlq.errors.partition": "0", "__dlq.errors.offset": "0", "__dlq.errors.group": "g",
		"__dlq.errors.delivery.count": "1", "__dlq.errors.message": "Offset rejected by client.",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("header %s is %q, want %q", k, got[k], v)
		}
	}
}

// With daybook.share.order=key no two records of a key are in flight.
func TestShareGroupKeepsKeyOrder(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 1)
	b.setGroup("g", "share.auto.offset.reset", "earliest", "daybook.share.order", "key")
	b.produceN("t", 6) // keys k0 k1 k0 k1 k0 k1
	s := b.sharer("g", "m", topic)
	if _, p := s.fetch(s.fetchRequest()); acquired(p) != "0-0×1 1-1×1 " {
		t.Fatal(acquired(p))
	}
	if _, p := s.fetch(s.fetchRequest(ack{1, 1, []int8{1}})); acquired(p) != "3-3×1 " {
		t.Fatal(acquired(p))
	}
	// A released record holds its key: nothing of k0 overtakes it.
	if _, p := s.fetch(s.fetchRequest(ack{0, 0, []int8{2}})); acquired(p) != "0-0×2 " {
		t.Fatal(acquired(p))
	}
}

func TestShareGroupOffsetsAreToldAndReset(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 1)
	b.setGroup("g", "share.auto.offset.reset", "earliest")
	b.produceN("t", 4)
	s := b.sharer("g", "m", topic)
	s.fetch(s.fetchRequest())
	s.fetch(s.fetchRequest(ack{0, 0, []int8{1}}))
	describe := func() (start, lag int64) {
		t.Helper()
		req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
		req.Groups = []kmsg.DescribeShareGroupOffsetsRequestGroup{{GroupID: "g"}}
		resp := call[*kmsg.DescribeShareGroupOffsetsResponse](s.rawConn, req, 1)
		if g := resp.Groups[0]; g.ErrorCode != 0 || len(g.Topics) != 1 {
			t.Fatalf("%+v", g)
		}
		p := resp.Groups[0].Topics[0].Partitions[0]
		return p.StartOffset, p.Lag
	}
	if start, lag := describe(); start != 1 || lag != 3 {
		t.Fatalf("start %d, lag %d", start, lag)
	}
	alter := kmsg.NewPtrAlterShareGroupOffsetsRequest()
	alter.GroupID = "g"
	at := kmsg.NewAlterShareGroupOffsetsRequestTopic()
	at.Topic = "t"
	at.Partitions = append(at.Partitions, kmsg.AlterShareGroupOffsetsRequestTopicPartition{Partition: 0, StartOffset: 2})
	alter.Topics = append(alter.Topics, at)
	if resp := call[*kmsg.AlterShareGroupOffsetsResponse](s.rawConn, alter, 0); resp.ErrorCode != codes.NonEmptyGroup {
		t.Fatalf("altering a group with members: %d", resp.ErrorCode)
	}
	leave := kmsg.NewPtrShareGroupHeartbeatRequest()
	leave.GroupID, leave.MemberID, leave.MemberEpoch = "g", "m", -1
	call[*kmsg.ShareGroupHeartbeatResponse](s.rawConn, leave, 1)
	if resp := call[*kmsg.AlterShareGroupOffsetsResponse](s.rawConn, alter, 0); resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", resp)
	}
	if start, lag := describe(); start != 2 || lag != 2 {
		t.Fatalf("after the reset: start %d, lag %d", start, lag)
	}
	b.restart()
	s.rawConn = b.dial()
	if start, lag := describe(); start != 2 || lag != 2 {
		t.Fatalf("after the restart: start %d, lag %d", start, lag)
	}
}
