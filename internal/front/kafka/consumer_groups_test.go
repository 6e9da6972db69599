package kafka

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

// beat is a ConsumerGroupHeartbeat that joins (epoch 0) for topics, or stays.
func beat(c *rawConn, version int16, group, member string, epoch int32, change func(*kmsg.ConsumerGroupHeartbeatRequest)) *kmsg.ConsumerGroupHeartbeatResponse {
	c.t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = group, member, epoch
	if epoch == 0 {
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames = 30_000, []string{"t"}
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	if change != nil {
		change(req)
	}
	return call[*kmsg.ConsumerGroupHeartbeatResponse](c, req, version)
}

func TestConsumerGroupHeartbeat(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 3)
	c := b.dial()
	for v := int16(0); v <= 1; v++ {
		group := []string{"g0", "g1"}[v]
		member := []string{"", "own-id"}[v] // before v1 the broker makes the id
		r := beat(c, v, group, member, 0, nil)
		if r.ErrorCode != codes.None || r.MemberEpoch != 1 || r.HeartbeatIntervalMillis != 5000 || v == 1 && *r.MemberID != member || *r.MemberID == "" {
			t.Fatalf("v%d: %+v", v, r)
		}
		want := []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{{TopicID: topic.ID, Partitions: []int32{0, 1, 2}}}
		if !reflect.DeepEqual(r.Assignment.Topics, want) {
			t.Errorf("v%d: assignment %+v", v, r.Assignment)
		}
		id := *r.MemberID
		if r := beat(c, v, group, id, 1, nil); r.ErrorCode != codes.None || r.Assignment != nil {
			t.Errorf("v%d: %+v", v, r)
		}
		if r := beat(c, v, group, id, 7, nil); r.ErrorCode != codes.FencedMemberEpoch || r.ErrorMessage == nil {
			t.Errorf("v%d: another epoch: %+v", v, r)
		}
	}
	other, bad, nope := "i", "a(", "best"
	for _, tc := range []struct {
		what    string
		version int16
		group   string
		member  string
		epoch   int32
		change  func(*kmsg.ConsumerGroupHeartbeatRequest)
		want    codes.Code
	}{
		{"no member id in v1", 1, "g1", "", 0, nil, codes.InvalidRequest},
		{"no group id", 1, "", "m", 0, nil, codes.InvalidGroupID},
		{"an unknown member", 1, "g1", "nobody", 3, nil, codes.UnknownMemberID},
		{"an unknown group", 1, "nope", "m", 3, nil, codes.GroupIDNotFound},
		{"a pattern that does not parse", 1, "g1", "m", 0, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = &bad }, codes.InvalidRegularExpression},
		{"an unknown assignor", 1, "g1", "m", 0, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = &nope }, codes.UnsupportedAssignor},
		{"a static member", 1, "g1", "s1", 0, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &other }, codes.None},
		{"its double", 1, "g1", "s2", 0, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &other }, codes.UnreleasedInstanceID},
		{"it leaves for now", 1, "g1", "s1", -2, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &other }, codes.None},
		{"its successor", 1, "g1", "s2", 0, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &other }, codes.None},
		{"the one before", 1, "g1", "s1", 2, func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &other }, codes.FencedInstanceID},
	} {
		if r := beat(c, tc.version, tc.group, tc.member, tc.epoch, tc.change); r.ErrorCode != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, r.ErrorCode, tc.want)
		}
	}
}

// TestConsumerGroupCommits: commits and fetches of members carry the member epoch
// (v9 and later); clients that do not know it are told so.
func TestConsumerGroupCommits(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	beat(c, 1, "g", "m", 0, nil)
	for _, tc := range []struct {
		version int16
		m       settled
		want    codes.Code
	}{
		{9, settled{"m", 1}, codes.None}, {10, settled{"m", 1}, codes.None},
		{9, settled{"m", 2}, codes.StaleMemberEpoch}, {8, settled{"m", 2}, codes.UnsupportedVersion},
		{9, settled{"x", 1}, codes.UnknownMemberID},
	} {
		if got := commitOffset(c, b, "g", tc.m, tc.version, "t", 0, 5, nil); got != tc.want {
			t.Errorf("commit v%d of %+v: %d, want %d", tc.version, tc.m, got, tc.want)
		}
	}
	fetch := func(member string, epoch int32) codes.Code {
		req := kmsg.NewPtrOffsetFetchRequest()
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.MemberID, g.MemberEpoch = "g", &member, epoch
		req.Groups = append(req.Groups, g)
		return call[*kmsg.OffsetFetchResponse](c, req, 9).Groups[0].ErrorCode
	}
	if got := fetch("m", 1); got != codes.None {
		t.Errorf("fetch: %d", got)
	}
	if got := fetch("m", 3); got != codes.StaleMemberEpoch {
		t.Errorf("fetch in another epoch: %d", got)
	}
	if got := fetch("x", 1); got != codes.UnknownMemberID {
		t.Errorf("fetch of somebody else: %d", got)
	}
}

func TestConsumerGroupDescribe(t *testing.T) {
	b := startBroker(t)
	topic := b.topic("t", 2)
	c := b.dial()
	rack, instance, pattern := "r1", "i", "t|u"
	beat(c, 1, "g", "m", 0, func(r *kmsg.ConsumerGroupHeartbeatRequest) {
		r.RackID, r.InstanceID, r.SubscribedTopicRegex = &rack, &instance, &pattern
	})
	settle(c, joinRequest("classic", "", "t"), 9, 5, "all")
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{"g", "classic", "nope"}, true
	r := call[*kmsg.ConsumerGroupDescribeResponse](c, req, 1)
	g := r.Groups[0]
	if g.ErrorCode != codes.None || g.State != "Stable" || g.Epoch != 1 || g.AssignmentEpoch != 1 || g.AssignorName != "uniform" || g.AuthorizedOperations <= 0 {
		t.Errorf("%+v", g)
	}
	all := kmsg.Assignment{TopicPartitions: []kmsg.AssignmentTopicPartition{{TopicID: topic.ID, Topic: "t", Partitions: []int32{0, 1}}}}
	want := kmsg.NewConsumerGroupDescribeResponseGroupMember()
	want.MemberID, want.InstanceID, want.RackID, want.MemberEpoch = "m", &instance, &rack, 1
	want.ClientID, want.ClientHost, want.SubscribedTopics, want.SubscribedTopicRegex = "raw", "/127.0.0.1", []string{"t"}, &pattern
	want.Assignment, want.TargetAssignment, want.MemberType = all, all, memberConsumer
	if !reflect.DeepEqual(g.Members, []kmsg.ConsumerGroupDescribeResponseGroupMember{want}) {
		t.Errorf("got  %+v\nwant %+v", g.Members, want)
	}
	for _, g := range r.Groups[1:] {
		if g.ErrorCode != codes.GroupIDNotFound || g.ErrorMessage == nil {
			t.Errorf("%s: %+v", g.Group, g)
		}
	}
	if d := describeGroup(c, "g", 6); d.ErrorCode != codes.GroupIDNotFound {
		t.Errorf("described as a classic group: %+v", d)
	}
}
