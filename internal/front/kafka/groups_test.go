package kafka

import (
	"fmt"
	"net"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

// joinRequest asks to join with the subscription to one topic.
func joinRequest(group, member string, topics ...string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 30_000
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = topics
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	return req
}

// settled is a member of a stable group of one.
type settled struct {
	id         string
	generation int32
}

// settle joins and syncs at the given versions.
func settle(c *rawConn, req *kmsg.JoinGroupRequest, joinVersion, syncVersion int16, assignment string) settled {
	c.t.Helper()
	j := call[*kmsg.JoinGroupResponse](c, req, joinVersion)
	if j.ErrorCode == codes.MemberIDRequired {
		req.MemberID = j.MemberID
		j = call[*kmsg.JoinGroupResponse](c, req, joinVersion)
	}
	if j.ErrorCode != codes.None || j.LeaderID != j.MemberID || len(j.Members) != 1 {
		c.t.Fatalf("join v%d: %+v", joinVersion, j)
	}
	s := kmsg.NewPtrSyncGroupRequest()
	s.Group, s.MemberID, s.InstanceID, s.Generation = req.Group, j.MemberID, req.InstanceID, j.Generation
	if syncVersion >= 5 {
		s.ProtocolType, s.Protocol = j.ProtocolType, j.Protocol
	}
	s.GroupAssignment = append(s.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: j.MemberID, MemberAssignment: []byte(assignment)})
	got := call[*kmsg.SyncGroupResponse](c, s, syncVersion)
	if got.ErrorCode != codes.None || string(got.MemberAssignment) != assignment {
		c.t.Fatalf("sync v%d: %+v", syncVersion, got)
	}
	return settled{j.MemberID, j.Generation}
}

func (s settled) heartbeat(c *rawConn, group string, version int16) codes.Code {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, s.id, s.generation
	return call[*kmsg.HeartbeatResponse](c, req, version).ErrorCode
}

// TestGroupVersions walks every version of what a classic consumer sends.
func TestGroupVersions(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	for v := int16(0); v <= 9; v++ {
		group := fmt.Sprint("g", v)
		m := settle(c, joinRequest(group, "", "t"), v, min(v, 5), "all")
		if code := m.heartbeat(c, group, min(v, 4)); code != codes.None {
			t.Errorf("heartbeat v%d: %d", min(v, 4), code)
		}
		if code := (settled{m.id, m.generation + 1}).heartbeat(c, group, min(v, 4)); code != codes.IllegalGeneration {
			t.Errorf("heartbeat of another generation: %d", code)
		}
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = group, m.id
		leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: m.id}, {MemberID: "nobody"}}
		lv := min(v, 5)
		r := call[*kmsg.LeaveGroupResponse](c, leave, lv)
		if r.ErrorCode != codes.None || lv >= 3 && (r.Members[0].ErrorCode != 0 || r.Members[1].ErrorCode != codes.UnknownMemberID) {
			t.Errorf("leave v%d: %+v", lv, r)
		}
		if code := m.heartbeat(c, group, min(v, 4)); code != codes.UnknownMemberID {
			t.Errorf("heartbeat after leaving: %d", code)
		}
	}
}

// TestUnknownGroups is row 24 of the semantics.
func TestUnknownGroups(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	m := settled{"nobody", 1}
	if code := m.heartbeat(c, "nope", 4); code != codes.UnknownMemberID {
		t.Errorf("heartbeat: %d", code)
	}
	s := kmsg.NewPtrSyncGroupRequest()
	s.Group, s.MemberID = "nope", "nobody"
	if r := call[*kmsg.SyncGroupResponse](c, s, 5); r.ErrorCode != codes.UnknownMemberID {
		t.Errorf("sync: %d", r.ErrorCode)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = "nope", "nobody"
	if r := call[*kmsg.LeaveGroupResponse](c, leave, 2); r.ErrorCode != codes.UnknownMemberID {
		t.Errorf("leave: %d", r.ErrorCode)
	}
	for v := int16(0); v <= 6; v++ {
		d := describeGroup(c, "nope", v)
		want := codes.None
		if v >= 6 {
			want = codes.GroupIDNotFound
		}
		if d.ErrorCode != want || d.State != "Dead" {
			t.Errorf("describe v%d: %+v", v, d)
		}
		if v >= 6 && (d.ErrorMessage == nil || !strings.Contains(*d.ErrorMessage, "nope")) {
			t.Errorf("describe v%d does not name the group: %+v", v, d)
		}
	}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{"nope", ""}
	if r := call[*kmsg.DeleteGroupsResponse](c, del, 2); r.Groups[0].ErrorCode != codes.GroupIDNotFound || r.Groups[1].ErrorCode != codes.InvalidGroupID {
		t.Errorf("delete: %+v", r.Groups)
	}
}

func describeGroup(c *rawConn, group string, version int16) kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	return call[*kmsg.DescribeGroupsResponse](c, req, version).Groups[0]
}

// commitRequest commits one offset; generation -1 and no member for a simple consumer.
func commitRequest(b *broker, group string, m settled, version int16, topic string, p int32, offset int64, metadata *string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, m.id, m.generation
	if m.id == "" {
		req.Generation = -1
	}
	rt := kmsg.NewOffsetCommitRequestTopic()
	if version >= 10 {
		if found, ok := b.topics.ByName(topic); ok {
			rt.TopicID = found.ID
		} else {
			rt.TopicID = [16]byte{9}
		}
	} else {
		rt.Topic = topic
	}
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p, offset, 5, metadata
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func commitOffset(c *rawConn, b *broker, group string, m settled, version int16, topic string, p int32, offset int64, metadata *string) codes.Code {
	c.t.Helper()
	req := commitRequest(b, group, m, version, topic, p, offset, metadata)
	return call[*kmsg.OffsetCommitResponse](c, req, version).Topics[0].Partitions[0].ErrorCode
}

// fetched is one committed offset as OffsetFetch gives it.
type fetched struct {
	Partition, LeaderEpoch int32
	Offset                 int64
	Metadata               string
	Code                   codes.Code
}

// fetchOffsets asks for partitions of t, or for all with none.
func fetchOffsets(c *rawConn, b *broker, group string, version int16, partitions ...int32) (out []fetched, code codes.Code) {
	c.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	t, _ := b.topics.ByName("t")
	if version < 8 {
		req.Group = group
		if partitions != nil {
			req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: partitions}}
		}
		r := call[*kmsg.OffsetFetchResponse](c, req, version)
		for _, rt := range r.Topics {
			for _, p := range rt.Partitions {
				out = append(out, fetched{p.Partition, p.LeaderEpoch, p.Offset, orEmpty(p.Metadata), p.ErrorCode})
			}
		}
		code = r.ErrorCode
	} else {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = group
		if partitions != nil {
			rt := kmsg.NewOffsetFetchRequestGroupTopic()
			rt.Topic, rt.TopicID, rt.Partitions = "t", t.ID, partitions
			g.Topics = append(g.Topics, rt)
		}
		req.Groups = append(req.Groups, g)
		r := call[*kmsg.OffsetFetchResponse](c, req, version).Groups[0]
		for _, rt := range r.Topics {
			for _, p := range rt.Partitions {
				out = append(out, fetched{p.Partition, p.LeaderEpoch, p.Offset, orEmpty(p.Metadata), p.ErrorCode})
			}
		}
		code = r.ErrorCode
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Partition < out[j].Partition })
	return out, code
}

// TestOffsetVersions is row 26 of the semantics: metadata and leader epoch round
// trip, at every version of both requests.
func TestOffsetVersions(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 3)
	c := b.dial()
	note := "a note"
	for v := int16(2); v <= 10; v++ {
		group := fmt.Sprint("g", v)
		for p, metadata := range []*string{&note, nil} {
			if code := commitOffset(c, b, group, settled{}, v, "t", int32(p), 42, metadata); code != codes.None {
				t.Fatalf("commit v%d: %d", v, code)
			}
		}
		epoch := int32(5)
		if v < 6 {
			epoch = -1
		}
		for fv := int16(1); fv <= 10; fv++ {
			shown := epoch
			if fv < 5 {
				shown = 0 // the version does not have it; the codec says so
			}
			want := []fetched{{0, shown, 42, note, 0}, {1, shown, 42, "", 0}}
			if fv >= 2 {
				if got, code := fetchOffsets(c, b, group, fv); code != 0 || !reflect.DeepEqual(normal(got, fv), normal(want, fv)) {
					t.Errorf("committed v%d, fetched all v%d: %v %d", v, fv, got, code)
				}
			}
			want = append(want, fetched{2, -1, -1, "", 0})
			if got, code := fetchOffsets(c, b, group, fv, 0, 1, 2); code != 0 || !reflect.DeepEqual(normal(got, fv), normal(want, fv)) {
				t.Errorf("committed v%d, fetched v%d: %v %d", v, fv, got, code)
			}
		}
	}
}

// normal forgets what version fv does not carry.
func normal(fs []fetched, fv int16) []fetched {
	out := append([]fetched(nil), fs...)
	if fv < 5 {
		for i := range out {
			out[i].LeaderEpoch = 0
		}
	}
	return out
}

func TestCommitErrors(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	m := settle(c, joinRequest("g", "", "t"), 9, 5, "all")
	long := string(make([]byte, 4097))
	for _, tc := range []struct {
		what     string
		group    string
		m        settled
		version  int16
		topic    string
		p        int32
		metadata *string
		want     codes.Code
	}{
		{"the member", "g", m, 9, "t", 0, nil, codes.None},
		{"nobody in a live group", "g", settled{}, 9, "t", 0, nil, codes.UnknownMemberID},
		{"another member", "g", settled{"x", m.generation}, 9, "t", 0, nil, codes.UnknownMemberID},
		{"an old generation", "g", settled{m.id, m.generation - 1}, 9, "t", 0, nil, codes.IllegalGeneration},
		{"a generation of no group, v8", "nope", settled{"x", 1}, 8, "t", 0, nil, codes.IllegalGeneration},
		{"a generation of no group, v9", "nope", settled{"x", 1}, 9, "t", 0, nil, codes.GroupIDNotFound},
		{"metadata over the limit", "g", m, 9, "t", 0, &long, codes.OffsetMetadataTooLarge},
		{"a partition too many", "g", m, 9, "t", 1, nil, codes.UnknownTopicOrPartition},
		{"a negative partition", "g", m, 9, "t", -1, nil, codes.UnknownTopicOrPartition},
		{"an unknown topic", "g", m, 9, "u", 0, nil, codes.UnknownTopicOrPartition},
		{"an unknown topic id", "g", m, 10, "u", 0, nil, codes.UnknownTopicID},
		{"no group id", "", settled{}, 9, "t", 0, nil, codes.InvalidGroupID},
	} {
		if got := commitOffset(c, b, tc.group, tc.m, tc.version, tc.topic, tc.p, 1, tc.metadata); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, got, tc.want)
		}
	}
}

// TestListGroups: filters by state (v4) and type (v5).
func TestListGroups(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	settle(c, joinRequest("live", "", "t"), 9, 5, "all")
	commitOffset(c, b, "simple", settled{}, 8, "t", 0, 1, nil)
	list := func(version int16, states, types []string) map[string]string {
		req := kmsg.NewPtrListGroupsRequest()
		req.StatesFilter, req.TypesFilter = states, types
		got := map[string]string{}
		for _, g := range call[*kmsg.ListGroupsResponse](c, req, version).Groups {
			got[g.Group] = g.ProtocolType + "/" + g.GroupState + "/" + g.GroupType
		}
		return got
	}
	for _, tc := range []struct {
		version       int16
		states, types []string
		want          map[string]string
	}{
		{0, nil, nil, map[string]string{"live": "consumer//", "simple": "//"}},
		{4, nil, nil, map[string]string{"live": "consumer/Stable/", "simple": "/Empty/"}},
		{4, []string{"Empty"}, nil, map[string]string{"simple": "/Empty/"}},
		{5, []string{"stable", "Dead"}, nil, map[string]string{"live": "consumer/Stable/classic"}},
		{5, nil, []string{"Classic"}, map[string]string{"live": "consumer/Stable/classic", "simple": "/Empty/classic"}},
		{5, nil, []string{"share"}, map[string]string{}},
	} {
		if got := list(tc.version, tc.states, tc.types); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("v%d %v %v: %v", tc.version, tc.states, tc.types, got)
		}
	}
}

// TestStaticRestart is row K09 of the reported cases: a static member comes back
// from another host, with another session timeout, inside the session timeout.
func TestStaticRestart(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	c1, c2 := b.dial(), b.dial()
	one, two := "one", "two"
	req1, req2 := joinRequest("g", "", "t"), joinRequest("g", "", "t")
	req1.InstanceID, req2.InstanceID = &one, &two
	m1 := settle(c1, req1, 9, 5, "all")

	req2.SetVersion(9)
	sent := c2.send(req2) // parks until the first rejoins
	waitFor(t, "the rebalance", func() bool { return m1.heartbeat(c1, "g", 4) == codes.RebalanceInProgress })
	req1.MemberID = m1.id
	j1 := call[*kmsg.JoinGroupResponse](c1, req1, 9)
	j2 := c2.receive(req2, sent).(*kmsg.JoinGroupResponse)
	if j1.Generation != 2 || j2.Generation != 2 || len(j1.Members) != 2 {
		t.Fatalf("joined: %+v %+v", j1, j2)
	}
	m1, m2 := settled{j1.MemberID, 2}, settled{j2.MemberID, 2}
	sync := func(c *rawConn, m settled, instance string, as map[string]string) string {
		s := kmsg.NewPtrSyncGroupRequest()
		s.Group, s.MemberID, s.InstanceID, s.Generation = "g", m.id, &instance, m.generation
		for id, a := range as {
			s.GroupAssignment = append(s.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(a)})
		}
		r := call[*kmsg.SyncGroupResponse](c, s, 5)
		if r.ErrorCode != codes.None {
			return fmt.Sprint("error ", r.ErrorCode)
		}
		return string(r.MemberAssignment)
	}
	if a := sync(c1, m1, one, map[string]string{m1.id: "p0", m2.id: "p1"}); a != "p0" {
		t.Fatal(a)
	}
	if a := sync(c2, m2, two, nil); a != "p1" {
		t.Fatal(a)
	}

	_ = c2.Close() // it dies without leaving
	c2 = b.dialFrom("127.0.0.2")
	again := joinRequest("g", "", "t")
	again.InstanceID, again.SessionTimeoutMillis = &two, 20_000
	j := call[*kmsg.JoinGroupResponse](c2, again, 9)
	if j.ErrorCode != codes.None || j.Generation != 2 || j.MemberID == m2.id || j.LeaderID != m1.id {
		t.Fatalf("rejoined: %+v", j)
	}
	if a := sync(c2, settled{j.MemberID, 2}, two, nil); a != "p1" {
		t.Errorf("assignment after the restart: %s", a)
	}
	if code := m1.heartbeat(c1, "g", 4); code != codes.None {
		t.Errorf("the peer is told %d", code)
	}
	old := kmsg.NewPtrHeartbeatRequest()
	old.Group, old.MemberID, old.InstanceID, old.Generation = "g", m2.id, &two, 2
	if r := call[*kmsg.HeartbeatResponse](c1, old, 4); r.ErrorCode != codes.FencedInstanceID {
		t.Errorf("the old member is told %d", r.ErrorCode)
	}
	hosts := map[string]string{}
	for _, m := range describeGroup(c1, "g", 6).Members {
		hosts[*m.InstanceID] = m.ClientHost
	}
	if want := map[string]string{one: "/127.0.0.1", two: "/127.0.0.2"}; !reflect.DeepEqual(hosts, want) {
		t.Errorf("hosts %v, want %v", hosts, want)
	}
}

func TestFindCoordinator(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	for v := int16(0); v <= 6; v++ {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g", "h"}
		r := call[*kmsg.FindCoordinatorResponse](c, req, v)
		if v < 4 && (r.ErrorCode != codes.None || r.NodeID != 1 || fmt.Sprint(r.Host, ":", r.Port) != b.addr) {
			t.Errorf("v%d: %+v", v, r)
		}
		if v >= 4 && (len(r.Coordinators) != 2 || r.Coordinators[1].Key != "h" || r.Coordinators[1].NodeID != 1) {
			t.Errorf("v%d: %+v", v, r)
		}
	}
	share := "g:" + b.topic("t", 1).ID.String() + ":0"
	for _, tc := range []struct {
		typ     int8
		key     string
		version int16
		want    codes.Code
	}{
		{1, "tx", 4, codes.None},
		{2, share, 6, codes.None},
		{2, share, 5, codes.InvalidRequest},
		{2, "g:x:0", 6, codes.InvalidRequest},
		{3, "g", 6, codes.InvalidRequest},
	} {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorType, req.CoordinatorKeys = tc.typ, []string{tc.key}
		if got := call[*kmsg.FindCoordinatorResponse](c, req, tc.version).Coordinators[0]; got.ErrorCode != tc.want {
			t.Errorf("type %d key %q: %+v", tc.typ, tc.key, got)
		}
	}
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// dialFrom connects from another loopback address.
func (b *broker) dialFrom(host string) *rawConn {
	b.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	c, err := d.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &rawConn{t: b.t.(*testing.T), Conn: c}
}
