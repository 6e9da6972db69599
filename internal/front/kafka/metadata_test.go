package kafka

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

func metadataRequest(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &n
		req.Topics = append(req.Topics, t)
	}
	return req
}

func TestRow22Metadata(t *testing.T) {
	b := startBroker(t)
	id := b.topic("a", 2).ID
	b.topic("b", 1)
	c := b.dial()
	for v := int16(0); v <= 13; v++ {
		all := metadataRequest()
		all.Topics = nil
		resp := call[*kmsg.MetadataResponse](c, all, v)
		if n := userTopics(resp); n != 2 {
			t.Errorf("version %d, all topics: %d", v, n)
		}
		if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1 || v >= 1 && resp.ControllerID != 1 || v >= 2 && text(resp.ClusterID) != "test-cluster" {
			t.Errorf("version %d: %+v", v, resp)
		}
		none := call[*kmsg.MetadataResponse](c, metadataRequest(), v)
		if n := userTopics(none); v == 0 && n != 2 || v > 0 && len(none.Topics) != 0 {
			t.Errorf("version %d, no topics: %d", v, n)
		}
		one := call[*kmsg.MetadataResponse](c, metadataRequest("a", "a"), v)
		if len(one.Topics) != 1 || one.Topics[0].ErrorCode != 0 || len(one.Topics[0].Partitions) != 2 || v >= 10 && one.Topics[0].TopicID != id {
			t.Errorf("version %d, one topic: %+v", v, one.Topics)
		}
		for i, p := range one.Topics[0].Partitions {
			if p.Partition != int32(i) || p.Leader != 1 || len(p.Replicas) != 1 || len(p.ISR) != 1 || v >= 7 && p.LeaderEpoch < 0 {
				t.Errorf("version %d: %+v", v, p)
			}
		}
	}
}

func userTopics(resp *kmsg.MetadataResponse) (n int) {
	for _, t := range resp.Topics {
		if text(t.Topic)[0] != '_' {
			n++
		}
	}
	return n
}

func TestRow22MetadataByIDAndBadNames(t *testing.T) {
	b := startBroker(t)
	id := b.topic("a", 1).ID
	c := b.dial()
	ask := func(version int16, id [16]byte, name *string) kmsg.MetadataResponseTopic {
		req := metadataRequest()
		q := kmsg.NewMetadataRequestTopic()
		q.TopicID, q.Topic = id, name
		req.Topics = append(req.Topics, q)
		return call[*kmsg.MetadataResponse](c, req, version).Topics[0]
	}
	if got := ask(12, id, nil); got.ErrorCode != 0 || text(got.Topic) != "a" {
		t.Errorf("by id: %+v", got)
	}
	if got := ask(12, [16]byte{7}, nil); got.ErrorCode != codes.UnknownTopicID || got.Topic != nil || got.TopicID != [16]byte{7} {
		t.Errorf("unknown id: %+v", got)
	}
	if got := ask(11, id, kmsg.StringPtr("a")); got.ErrorCode != codes.InvalidRequest {
		t.Errorf("an id in version 11: %+v", got)
	}
	for _, name := range []string{"", ".", "..", "a b", "ü", string(make([]byte, 250))} {
		if got := ask(9, [16]byte{}, &name); got.ErrorCode != codes.InvalidTopicException {
			t.Errorf("name %q: error %d", name, got.ErrorCode)
		}
	}
	if got := ask(9, [16]byte{}, kmsg.StringPtr("missing")); got.ErrorCode != codes.UnknownTopicOrPartition {
		t.Errorf("missing: error %d", got.ErrorCode)
	}
}

func TestRow23AutoCreate(t *testing.T) {
	for _, tc := range []struct {
		broker, request string
		version         int16
		created         bool
	}{
		{"true", "true", 12, true},
		{"true", "false", 12, false},
		{"false", "true", 12, false},
		{"true", "not said", 3, true},
		{"true", "false", 4, false},
	} {
		t.Run(fmt.Sprintf("broker %s, request %s", tc.broker, tc.request), func(t *testing.T) {
			b := startBroker(t, func(b *broker) {
				b.static["auto.create.topics.enable"] = tc.broker
				b.static["num.partitions"] = "3"
			})
			c := b.dial()
			req := metadataRequest("new", "not valid")
			req.AllowAutoTopicCreation = tc.request == "true"
			var got kmsg.MetadataResponseTopic
			for range 2 { // the first answer may say that it does not exist yet
				resp := call[*kmsg.MetadataResponse](c, req, tc.version)
				got = resp.Topics[0]
				if resp.Topics[1].ErrorCode != codes.InvalidTopicException {
					t.Errorf("an invalid name: error %d", resp.Topics[1].ErrorCode)
				}
			}
			if tc.created && (got.ErrorCode != 0 || len(got.Partitions) != 3) || !tc.created && got.ErrorCode != codes.UnknownTopicOrPartition {
				t.Errorf("error %d, %d partitions", got.ErrorCode, len(got.Partitions))
			}
		})
	}
}

// TestRow23RecreatedTopicHasANewID: clients that hold the old id must notice.
func TestRow23RecreatedTopicHasANewID(t *testing.T) {
	b := startBroker(t)
	first := b.topic("t", 1).ID
	c := b.dial()
	del := kmsg.NewPtrDeleteTopicsRequest()
	q := kmsg.NewDeleteTopicsRequestTopic()
	q.Topic = kmsg.StringPtr("t")
	del.Topics = append(del.Topics, q)
	if resp := call[*kmsg.DeleteTopicsResponse](c, del, 6); resp.Topics[0].ErrorCode != 0 || resp.Topics[0].TopicID != first {
		t.Fatalf("%+v", resp.Topics[0])
	}
	req := metadataRequest("t")
	req.AllowAutoTopicCreation = true
	if got := call[*kmsg.MetadataResponse](c, req, 12).Topics[0]; got.ErrorCode != 0 || got.TopicID == first {
		t.Errorf("%+v", got)
	}
	fetch := fetchRequest("", 0)
	fetch.Topics[0].TopicID = first
	if p := call[*kmsg.FetchResponse](c, fetch, 13).Topics[0].Partitions[0]; p.ErrorCode != codes.UnknownTopicID {
		t.Errorf("fetch by the old id: error %d", p.ErrorCode)
	}
}

func TestRow33AdvertisedAddress(t *testing.T) {
	told := func(c *rawConn) string {
		b := call[*kmsg.MetadataResponse](c, metadataRequest(), 9).Brokers[0]
		d := call[*kmsg.DescribeClusterResponse](c, kmsg.NewPtrDescribeClusterRequest(), 0).Brokers[0]
		if d.Host != b.Host || d.Port != b.Port {
			t.Errorf("DescribeCluster says %s:%d, Metadata %s:%d", d.Host, d.Port, b.Host, b.Port)
		}
		return net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	b := startBroker(t)
	if got := told(b.dial()); got != b.addr {
		t.Errorf("advertised %s, dialled %s", got, b.addr)
	}
	b = startBroker(t, func(b *broker) { b.opts.Advertise = "broker.example:19092" })
	if got := told(b.dial()); got != "broker.example:19092" {
		t.Errorf("advertised %s", got)
	}
	if _, err := New(Options{Advertise: "no-port"}); err == nil {
		t.Error("an advertised address without a port was accepted")
	}
}

func TestDescribeClusterEndpoints(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	for typ, want := range map[int8]codes.Code{1: 0, 2: codes.MismatchedEndpointType, 3: codes.UnsupportedEndpointType} {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType, req.IncludeClusterAuthorizedOperations = typ, true
		resp := call[*kmsg.DescribeClusterResponse](c, req, 2)
		if resp.ErrorCode != want || want == 0 && (resp.ClusterID != "test-cluster" || resp.ClusterAuthorizedOperations <= 0) {
			t.Errorf("type %d: %+v", typ, resp)
		}
	}
}

func TestDescribeTopicPartitions(t *testing.T) {
	b := startBroker(t)
	b.topic("a", 3)
	b.topic("c", 2)
	c := b.dial()
	type page struct {
		names []string // topic:first-last or topic:error
		next  string
	}
	ask := func(limit int32, cursor string, at int32, names ...string) (p page) {
		t.Helper()
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = limit
		for _, n := range names {
			q := kmsg.NewDescribeTopicPartitionsRequestTopic()
			q.Topic = n
			req.Topics = append(req.Topics, q)
		}
		if cursor != "" {
			req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: cursor, Partition: at}
		}
		resp := call[*kmsg.DescribeTopicPartitionsResponse](c, req, 0)
		for _, t := range resp.Topics {
			s := fmt.Sprintf("%s:error %d", text(t.Topic), t.ErrorCode)
			if n := len(t.Partitions); n > 0 {
				s = fmt.Sprintf("%s:%d-%d", text(t.Topic), t.Partitions[0].Partition, t.Partitions[n-1].Partition)
			}
			p.names = append(p.names, s)
		}
		if resp.NextCursor != nil {
			p.next = fmt.Sprintf("%s:%d", resp.NextCursor.Topic, resp.NextCursor.Partition)
		}
		return p
	}
	for _, tc := range []struct {
		got  page
		want string
	}{
		{ask(100, "", 0, "c", "b", "a", "a"), "{[a:0-2 b:error 3 c:0-1] }"},
		{ask(2, "", 0, "a", "c"), "{[a:0-1] a:2}"},
		{ask(2, "a", 2, "a", "c"), "{[a:2-2 c:0-0] c:1}"},
		{ask(1, "a", 2, "a", "c"), "{[a:2-2] c:0}"},
		{ask(2, "c", 1, "a", "c"), "{[c:1-1] }"},
		{ask(100, "b", 5, "a", "c"), "{[c:0-1] }"},
		{ask(-4, "", 0, "a"), "{[a:0-0] a:1}"},
		{ask(100, "", 0, "not valid"), "{[not valid:error 17] }"},
		{ask(100, "a", 0), "{[a:0-2 c:0-1] }"},
	} {
		if got := fmt.Sprint(tc.got); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
