package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/records"
)

// newTopic is one topic of a CreateTopics request.
func newTopic(name string, partitions int32, replication int16, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replication
	for i := 0; i+1 < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		t.Configs = append(t.Configs, c)
	}
	return t
}

func assigned(name string, replicas ...[]int32) kmsg.CreateTopicsRequestTopic {
	t := newTopic(name, -1, -1)
	for i, r := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), r
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	return t
}

func createTopics(c *rawConn, version int16, validateOnly bool, topics ...kmsg.CreateTopicsRequestTopic) []kmsg.CreateTopicsResponseTopic {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.ValidateOnly = topics, validateOnly
	return call[*kmsg.CreateTopicsResponse](c, req, version).Topics
}

func TestRow29CreateTopics(t *testing.T) {
	b := startBroker(t, func(b *broker) { b.static["num.partitions"] = "4" })
	b.topic("there", 1)
	c := b.dial()
	half := assigned("half", []int32{1})
	half.NumPartitions = 1
	for _, tc := range []struct {
		topic      kmsg.CreateTopicsRequestTopic
		want       codes.Code
		partitions int32
	}{
		{newTopic("plain", 3, 1), 0, 3},
		{newTopic("defaults", -1, -1), 0, 4},
		{newTopic("configured", 1, 1, "cleanup.policy", "compact", "retention.ms", "1000"), 0, 1},
		{assigned("assigned", []int32{1}, []int32{1}), 0, 2},
		{newTopic("there", 1, 1), codes.TopicAlreadyExists, -1},
		{newTopic("bad name", 1, 1), codes.InvalidTopicException, -1},
		{newTopic("zero", 0, 1), codes.InvalidPartitions, -1},
		{newTopic("negative", -2, 1), codes.InvalidPartitions, -1},
		{newTopic("rf0", 1, 0), codes.InvalidReplicationFactor, -1},
		{newTopic("rf3", 1, 3), codes.InvalidReplicationFactor, -1},
		{newTopic("unknown-config", 1, 1, "no.such.key", "1"), codes.InvalidConfig, -1},
		{newTopic("bad-config", 1, 1, "retention.ms", "soon"), codes.InvalidConfig, -1},
		{half, codes.InvalidRequest, -1},
		{assigned("elsewhere", []int32{2}), codes.InvalidReplicaAssignment, -1},
		{assigned("nowhere", []int32{}), codes.InvalidReplicaAssignment, -1},
		{assigned("both", []int32{1, 2}), codes.InvalidReplicaAssignment, -1},
	} {
		// First only checked: the same outcome, and nothing is there after it.
		dry := createTopics(c, 7, true, tc.topic)[0]
		got := createTopics(c, 7, false, tc.topic)[0]
		if dry.ErrorCode != tc.want || got.ErrorCode != tc.want || (tc.want != 0) != (got.ErrorMessage != nil) ||
			got.NumPartitions != tc.partitions || dry.NumPartitions != tc.partitions {
			t.Errorf("%s: checked %d, created %d (%s), %d partitions; want %d, %d", tc.topic.Topic, dry.ErrorCode, got.ErrorCode,
				text(got.ErrorMessage), got.NumPartitions, tc.want, tc.partitions)
		}
		if tc.want == 0 && (got.TopicID == [16]byte{} || got.ReplicationFactor != 1 || len(got.Configs) < 20 || len(dry.Configs) != len(got.Configs)) {
			t.Errorf("%s: %+v", tc.topic.Topic, got)
		}
	}
	for v := int16(2); v <= 7; v++ {
		name := fmt.Sprintf("v%d", v)
		if got := createTopics(c, v, false, newTopic(name, 1, 1)); got[0].ErrorCode != 0 {
			t.Errorf("version %d: %+v", v, got[0])
		}
	}
	twice := createTopics(c, 7, false, newTopic("twice", 1, 1), newTopic("other", 1, 1), newTopic("twice", 1, 1))
	if len(twice) != 2 || twice[0].ErrorCode != codes.InvalidRequest || twice[1].ErrorCode != 0 {
		t.Errorf("a name twice: %+v", twice)
	}
}

func TestRow29AssumedReplicas(t *testing.T) {
	b := startBroker(t, func(b *broker) { b.opts.AssumeReplicas = true })
	got := createTopics(b.dial(), 7, false, newTopic("rf3", 1, 3), assigned("spread", []int32{1, 2, 3}))
	if got[0].ErrorCode != 0 || got[0].ReplicationFactor != 3 || got[1].ErrorCode != 0 {
		t.Errorf("%+v", got)
	}
}

func TestCreateManyTopicsAtOnce(t *testing.T) {
	b := startBroker(t)
	var many []kmsg.CreateTopicsRequestTopic
	for i := range 300 {
		many = append(many, newTopic(fmt.Sprintf("t%03d", i), 2, 1))
	}
	c := b.dial()
	for _, got := range createTopics(c, 7, false, many...) {
		if got.ErrorCode != 0 {
			t.Fatalf("%s: error %d", got.Topic, got.ErrorCode)
		}
	}
	if n := userTopics(call[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 9)); n != 300 {
		t.Errorf("%d topics", n)
	}
}

func TestDeleteTopics(t *testing.T) {
	b := startBroker(t)
	id := b.topic("by-id", 1).ID
	for v := 1; v <= 6; v++ {
		b.topic(fmt.Sprintf("v%d", v), 1)
	}
	c := b.dial()
	for v := int16(1); v <= 5; v++ {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TopicNames = []string{fmt.Sprintf("v%d", v), "missing"}
		got := call[*kmsg.DeleteTopicsResponse](c, req, v).Topics
		if got[0].ErrorCode != 0 || got[1].ErrorCode != codes.UnknownTopicOrPartition {
			t.Errorf("version %d: %+v", v, got)
		}
	}
	named := func(name string, id [16]byte) kmsg.DeleteTopicsRequestTopic {
		q := kmsg.NewDeleteTopicsRequestTopic()
		if name != "" {
			q.Topic = &name
		}
		q.TopicID = id
		return q
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics = []kmsg.DeleteTopicsRequestTopic{
		named("v6", [16]byte{}), named("", id), named("", [16]byte{5}), named("by-id", id), named("", [16]byte{}),
		named("__consumer_offsets", [16]byte{}), named("missing", [16]byte{}), named("missing", [16]byte{}),
	}
	want := []codes.Code{0, 0, codes.UnknownTopicID, codes.InvalidRequest, codes.InvalidRequest, codes.PolicyViolation, codes.InvalidRequest}
	got := call[*kmsg.DeleteTopicsResponse](c, req, 6).Topics
	if len(got) != len(want) {
		t.Fatalf("%d answers, want %d", len(got), len(want))
	}
	for i, code := range want {
		if got[i].ErrorCode != code {
			t.Errorf("topic %d: error %d (%s), want %d", i, got[i].ErrorCode, text(got[i].ErrorMessage), code)
		}
	}
	if text(got[1].Topic) != "by-id" {
		t.Errorf("deleted by id: the answer names %s", text(got[1].Topic))
	}
}

func TestDeleteRecordsRequest(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	b.topic("compacted", 1, "cleanup.policy", "compact")
	b.topic("both", 1, "cleanup.policy", "compact,delete")
	c := b.dial()
	for _, name := range []string{"t", "compacted", "both"} {
		produced(c, name, 0, batch(t, records.None, 1, record{key: "a"}, record{key: "b"}, record{key: "c"}))
	}
	for _, tc := range []struct {
		topic  string
		index  int32
		before int64
		low    int64
		code   codes.Code
	}{
		{"t", 0, 2, 2, 0},
		{"t", 0, 1, 2, 0},
		{"t", 0, -1, 3, 0},
		{"t", 0, 4, -1, codes.OffsetOutOfRange},
		{"t", 0, -2, -1, codes.OffsetOutOfRange},
		{"t", 1, 0, -1, codes.UnknownTopicOrPartition},
		{"missing", 0, 0, -1, codes.UnknownTopicOrPartition},
		{"compacted", 0, 1, -1, codes.PolicyViolation},
		{"both", 0, 1, 1, 0},
		{"__consumer_offsets", 0, 0, -1, codes.InvalidTopicException},
	} {
		if p := deleteRecords(t, c, tc.topic, tc.index, tc.before); p.ErrorCode != tc.code || p.LowWatermark != tc.low {
			t.Errorf("%s-%d before %d: error %d, low watermark %d; want %d, %d", tc.topic, tc.index, tc.before, p.ErrorCode, p.LowWatermark, tc.code, tc.low)
		}
	}
	fetch := fetchRequest("t", 0)
	if p := call[*kmsg.FetchResponse](c, fetch, 11).Topics[0].Partitions[0]; p.ErrorCode != codes.OffsetOutOfRange {
		t.Errorf("fetch before the new start: error %d", p.ErrorCode)
	}
}

func TestCreatePartitions(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	c := b.dial()
	grow := func(version int16, name string, count int32, validateOnly bool, assignment ...[]int32) codes.Code {
		req := kmsg.NewPtrCreatePartitionsRequest()
		q := kmsg.NewCreatePartitionsRequestTopic()
		q.Topic, q.Count, req.ValidateOnly = name, count, validateOnly
		for _, r := range assignment {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = r
			q.Assignment = append(q.Assignment, a)
		}
		req.Topics = append(req.Topics, q)
		return call[*kmsg.CreatePartitionsResponse](c, req, version).Topics[0].ErrorCode
	}
	for _, tc := range []struct {
		name string
		got  codes.Code
		want codes.Code
	}{
		{"fewer", grow(3, "t", 1, false), codes.InvalidPartitions},
		{"as many", grow(3, "t", 2, false), codes.InvalidPartitions},
		{"negative", grow(3, "t", -1, false), codes.InvalidPartitions},
		{"only checked", grow(3, "t", 3, true), 0},
		{"wrong assignment", grow(3, "t", 4, false, []int32{1}), codes.InvalidReplicaAssignment},
		{"elsewhere", grow(3, "t", 3, false, []int32{2}), codes.InvalidReplicaAssignment},
		{"assigned", grow(0, "t", 3, false, []int32{1}), 0},
		{"missing", grow(3, "missing", 3, false), codes.UnknownTopicOrPartition},
		{"internal", grow(3, "__consumer_offsets", 300, false), codes.PolicyViolation},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: error %d, want %d", tc.name, tc.got, tc.want)
		}
	}
	if got := call[*kmsg.MetadataResponse](c, metadataRequest("t"), 9).Topics[0]; len(got.Partitions) != 3 {
		t.Errorf("%d partitions", len(got.Partitions))
	}
	produced(c, "t", 2, batch(t, records.None, 1, values("x")...))
}

func TestRow32OneNodeAnswersForItself(t *testing.T) {
	b := startBroker(t, func(b *broker) { b.opts.Space = func() (int64, int64) { return 1000, 400 } })
	b.topic("t", 2)
	c := b.dial()
	produced(c, "t", 1, batch(t, records.None, 1, values("x")...))

	t.Run("DescribeLogDirs", func(t *testing.T) {
		for v := int16(1); v <= 5; v++ {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			q := kmsg.NewDescribeLogDirsRequestTopic()
			q.Topic, q.Partitions = "t", []int32{0, 1, 9}
			req.Topics = append(req.Topics, q)
			d := call[*kmsg.DescribeLogDirsResponse](c, req, v).Dirs[0]
			if d.Dir != "/data" || len(d.Topics) != 1 || len(d.Topics[0].Partitions) != 2 || d.Topics[0].Partitions[1].Size != 69 ||
				v >= 4 && (d.TotalBytes != 1000 || d.UsableBytes != 400) {
				t.Errorf("version %d: %+v", v, d)
			}
		}
		all := call[*kmsg.DescribeLogDirsResponse](c, kmsg.NewPtrDescribeLogDirsRequest(), 4).Dirs[0]
		if len(all.Topics) < 2 {
			t.Errorf("all topics: %+v", all.Topics)
		}
	})
	t.Run("AlterReplicaLogDirs", func(t *testing.T) {
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		for _, dir := range []string{"/data", "/other"} {
			d := kmsg.NewAlterReplicaLogDirsRequestDir()
			d.Dir = dir
			q := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
			q.Topic, q.Partitions = "t", []int32{0, 9}
			d.Topics = append(d.Topics, q)
			req.Dirs = append(req.Dirs, d)
		}
		got := call[*kmsg.AlterReplicaLogDirsResponse](c, req, 2).Topics
		if got[0].Partitions[0].ErrorCode != 0 || got[1].Partitions[0].ErrorCode != codes.LogDirNotFound ||
			got[0].Partitions[1].ErrorCode != codes.UnknownTopicOrPartition {
			t.Errorf("%+v", got)
		}
	})
	t.Run("ElectLeaders", func(t *testing.T) {
		req := kmsg.NewPtrElectLeadersRequest()
		q := kmsg.NewElectLeadersRequestTopic()
		q.Topic, q.Partitions = "t", []int32{0, 9}
		req.Topics = append(req.Topics, q)
		got := call[*kmsg.ElectLeadersResponse](c, req, 2).Topics[0].Partitions
		if got[0].ErrorCode != codes.ElectionNotNeeded || got[1].ErrorCode != codes.UnknownTopicOrPartition {
			t.Errorf("%+v", got)
		}
		if got := call[*kmsg.ElectLeadersResponse](c, kmsg.NewPtrElectLeadersRequest(), 2); got.ErrorCode != 0 || len(got.Topics) != 0 {
			t.Errorf("all: %+v", got)
		}
		req.ElectionType = 5
		if got := call[*kmsg.ElectLeadersResponse](c, req, 1); got.ErrorCode != codes.InvalidRequest {
			t.Errorf("type 5: error %d", got.ErrorCode)
		}
	})
	t.Run("Reassignments", func(t *testing.T) {
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		q := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		q.Topic = "t"
		want := []codes.Code{0, codes.InvalidReplicaAssignment, codes.NoReassignmentInProgress, codes.InvalidReplicaAssignment}
		for _, r := range [][]int32{{1}, {2}, nil, {}} {
			p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			p.Replicas = r
			q.Partitions = append(q.Partitions, p)
		}
		req.Topics = append(req.Topics, q)
		for i, p := range call[*kmsg.AlterPartitionAssignmentsResponse](c, req, 1).Topics[0].Partitions {
			if p.ErrorCode != want[i] {
				t.Errorf("replicas %v: error %d, want %d", q.Partitions[i].Replicas, p.ErrorCode, want[i])
			}
		}
		if got := call[*kmsg.ListPartitionReassignmentsResponse](c, kmsg.NewPtrListPartitionReassignmentsRequest(), 0); got.ErrorCode != 0 || len(got.Topics) != 0 {
			t.Errorf("list: %+v", got)
		}
	})
	t.Run("DescribeQuorum", func(t *testing.T) {
		for v := int16(0); v <= 2; v++ {
			req := kmsg.NewPtrDescribeQuorumRequest()
			for _, name := range []string{"__cluster_metadata", "t"} {
				q := kmsg.NewDescribeQuorumRequestTopic()
				q.Topic = name
				q.Partitions = append(q.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
				req.Topics = append(req.Topics, q)
			}
			got := call[*kmsg.DescribeQuorumResponse](c, req, v)
			p := got.Topics[0].Partitions[0]
			if p.LeaderID != 1 || p.HighWatermark < 1 || len(p.CurrentVoters) != 1 || v == 2 && len(got.Nodes) != 1 ||
				got.Topics[1].Partitions[0].ErrorCode != codes.UnknownTopicOrPartition {
				t.Errorf("version %d: %+v", v, got)
			}
		}
	})
	t.Run("UpdateFeatures", func(t *testing.T) {
		for _, tc := range []struct {
			name  string
			level int16
			want  codes.Code
		}{{"metadata.version", metadataVersion, 0}, {"metadata.version", 20, codes.InvalidUpdateVersion}, {"unknown", 1, codes.InvalidUpdateVersion}} {
			req := kmsg.NewPtrUpdateFeaturesRequest()
			u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
			u.Feature, u.MaxVersionLevel = tc.name, tc.level
			req.FeatureUpdates = append(req.FeatureUpdates, u)
			old, now := call[*kmsg.UpdateFeaturesResponse](c, req, 1), call[*kmsg.UpdateFeaturesResponse](c, req, 2)
			if old.Results[0].ErrorCode != tc.want || now.ErrorCode != tc.want {
				t.Errorf("%s %d: %d and %d, want %d", tc.name, tc.level, old.Results[0].ErrorCode, now.ErrorCode, tc.want)
			}
		}
	})
	t.Run("Telemetry", func(t *testing.T) {
		sub := call[*kmsg.GetTelemetrySubscriptionsResponse](c, kmsg.NewPtrGetTelemetrySubscriptionsRequest(), 0)
		if sub.ErrorCode != 0 || sub.ClientInstanceID == [16]byte{} || len(sub.RequestedMetrics) != 0 || sub.PushIntervalMillis <= 0 {
			t.Errorf("%+v", sub)
		}
		push := kmsg.NewPtrPushTelemetryRequest()
		push.ClientInstanceID, push.SubscriptionID = sub.ClientInstanceID, sub.SubscriptionID
		if got := call[*kmsg.PushTelemetryResponse](c, push, 0); got.ErrorCode != 0 {
			t.Errorf("push: error %d", got.ErrorCode)
		}
		push.SubscriptionID++
		if got := call[*kmsg.PushTelemetryResponse](c, push, 0); got.ErrorCode != codes.UnknownSubscriptionID {
			t.Errorf("other subscription: error %d", got.ErrorCode)
		}
	})
}

func describeConfigs(c *rawConn, typ kmsg.ConfigResourceType, name string, version int16, keys ...string) kmsg.DescribeConfigsResponseResource {
	c.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	q := kmsg.NewDescribeConfigsRequestResource()
	q.ResourceType, q.ResourceName, q.ConfigNames = typ, name, keys
	req.Resources = append(req.Resources, q)
	return call[*kmsg.DescribeConfigsResponse](c, req, version).Resources[0]
}

type change struct {
	key, value string
	op         kmsg.IncrementalAlterConfigOp
}

func alterConfigs(c *rawConn, typ kmsg.ConfigResourceType, name string, validateOnly bool, changes ...change) (codes.Code, string) {
	c.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = validateOnly
	q := kmsg.NewIncrementalAlterConfigsRequestResource()
	q.ResourceType, q.ResourceName = typ, name
	for _, ch := range changes {
		k := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		k.Name, k.Op = ch.key, ch.op
		if ch.op != kmsg.IncrementalAlterConfigOpDelete {
			k.Value = &ch.value
		}
		q.Configs = append(q.Configs, k)
	}
	req.Resources = append(req.Resources, q)
	got := call[*kmsg.IncrementalAlterConfigsResponse](c, req, 1).Resources[0]
	return got.ErrorCode, text(got.ErrorMessage)
}

func TestRow28Configs(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "retention.ms", "5000")
	c := b.dial()
	value := func(typ kmsg.ConfigResourceType, name, key string) string {
		t.Helper()
		r := describeConfigs(c, typ, name, 4, key)
		if r.ErrorCode != 0 || len(r.Configs) != 1 {
			t.Fatalf("%s: %+v", key, r)
		}
		k := r.Configs[0]
		return fmt.Sprintf("%s from %d", text(k.Value), k.Source)
	}
	topic, node := kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker

	for _, k := range describeConfigs(c, topic, "t", 4).Configs {
		if k.Documentation == nil || k.ConfigType == 0 || k.Value == nil || len(k.ConfigSynonyms) == 0 {
			t.Errorf("%s lacks something: %+v", k.Name, k)
		}
	}
	if got := value(topic, "t", "retention.ms"); got != "5000 from 1" {
		t.Errorf("retention.ms is %s", got)
	}
	if got := value(topic, "t", "cleanup.policy"); got != "delete from 5" {
		t.Errorf("cleanup.policy is %s", got)
	}
	step := func(want string, typ kmsg.ConfigResourceType, name, key string, ops ...change) {
		t.Helper()
		if code, msg := alterConfigs(c, typ, name, false, ops...); code != 0 {
			t.Fatalf("%v: error %d (%s)", ops, code, msg)
		}
		if got := value(typ, name, key); got != want {
			t.Errorf("after %v: %s is %s, want %s", ops, key, got, want)
		}
	}
	step("compact,delete from 1", topic, "t", "cleanup.policy", change{"cleanup.policy", "compact,delete", kmsg.IncrementalAlterConfigOpSet})
	step("delete from 1", topic, "t", "cleanup.policy", change{"cleanup.policy", "compact", kmsg.IncrementalAlterConfigOpSubtract})
	step("delete,compact from 1", topic, "t", "cleanup.policy", change{"cleanup.policy", "compact", kmsg.IncrementalAlterConfigOpAppend})
	step("delete from 5", topic, "t", "cleanup.policy", change{"cleanup.policy", "", kmsg.IncrementalAlterConfigOpDelete})
	step("2000 from 2", node, "1", "message.max.bytes", change{"message.max.bytes", "2000", kmsg.IncrementalAlterConfigOpSet})
	if got := value(topic, "t", "max.message.bytes"); got != "2000 from 2" {
		t.Errorf("the topic's max.message.bytes is %s", got)
	}
	step("true from 1", topic, "t", "preallocate", change{"preallocate", "true", kmsg.IncrementalAlterConfigOpSet}) // kept, though it does nothing
	throttle := "leader.replication.throttled.rate"                                                                 // what kafka-reassign-partitions clears when it is done
	step("7 from 2", node, "1", throttle, change{throttle, "7", kmsg.IncrementalAlterConfigOpSet})
	step("9223372036854775807 from 5", node, "1", throttle, change{throttle, "", kmsg.IncrementalAlterConfigOpDelete})

	set := kmsg.IncrementalAlterConfigOpSet
	for name, tc := range map[string]struct {
		typ  kmsg.ConfigResourceType
		of   string
		ops  []change
		want codes.Code
	}{
		"unknown key":       {topic, "t", []change{{"no.such.key", "1", set}}, codes.InvalidConfig},
		"bad value":         {topic, "t", []change{{"retention.ms", "x", set}}, codes.InvalidConfig},
		"one good, one bad": {topic, "t", []change{{"retention.ms", "7777", set}, {"segment.ms", "x", set}}, codes.InvalidConfig},
		"append to no list": {topic, "t", []change{{"retention.ms", "1", kmsg.IncrementalAlterConfigOpAppend}}, codes.InvalidConfig},
		"twice":             {topic, "t", []change{{"retention.ms", "1", set}, {"retention.ms", "2", set}}, codes.InvalidRequest},
		"no topic":          {topic, "missing", []change{{"retention.ms", "1", set}}, codes.UnknownTopicOrPartition},
		"other node":        {node, "9", []change{{"message.max.bytes", "1", set}}, codes.InvalidRequest},
		"loggers":           {kmsg.ConfigResourceTypeBrokerLogger, "1", []change{{"root", "DEBUG", set}}, codes.InvalidRequest},
	} {
		if code, msg := alterConfigs(c, tc.typ, tc.of, false, tc.ops...); code != tc.want {
			t.Errorf("%s: error %d (%s), want %d", name, code, msg, tc.want)
		}
	}
	if code, _ := alterConfigs(c, topic, "t", true, change{"retention.ms", "9999", set}); code != 0 {
		t.Errorf("only checked: error %d", code)
	}
	if got := value(topic, "t", "retention.ms"); got != "5000 from 1" {
		t.Errorf("refused and checked changes were made: retention.ms is %s", got)
	}
	b.restart()
	c = b.dial()
	if got := value(topic, "t", "preallocate"); got != "true from 1" {
		t.Errorf("after a restart preallocate is %s", got)
	}
}

func TestRow28DescribeConfigsResources(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	for _, tc := range []struct {
		typ  kmsg.ConfigResourceType
		name string
		want codes.Code
	}{
		{kmsg.ConfigResourceTypeTopic, "t", 0},
		{kmsg.ConfigResourceTypeTopic, "missing", codes.UnknownTopicOrPartition},
		{kmsg.ConfigResourceTypeTopic, "a b", codes.InvalidTopicException},
		{kmsg.ConfigResourceTypeBroker, "1", 0},
		{kmsg.ConfigResourceTypeBroker, "", 0},
		{kmsg.ConfigResourceTypeBroker, "2", codes.InvalidRequest},
		{kmsg.ConfigResourceTypeGroupConfig, "g", 0},
		{kmsg.ConfigResourceTypeGroupConfig, "", codes.InvalidRequest},
		{kmsg.ConfigResourceTypeClientMetrics, "m", 0},
		{kmsg.ConfigResourceTypeBrokerLogger, "1", codes.InvalidRequest},
		{99, "x", codes.InvalidRequest},
	} {
		for v := int16(1); v <= 4; v++ {
			if r := describeConfigs(c, tc.typ, tc.name, v); r.ErrorCode != tc.want {
				t.Errorf("type %d %q, version %d: error %d (%s), want %d", tc.typ, tc.name, v, r.ErrorCode, text(r.ErrorMessage), tc.want)
			}
		}
	}
}

func TestRow28AlterConfigsReplaces(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "retention.ms", "5000", "segment.ms", "1000")
	c := b.dial()
	for v := int16(0); v <= 2; v++ {
		req := kmsg.NewPtrAlterConfigsRequest()
		q := kmsg.NewAlterConfigsRequestResource()
		q.ResourceType, q.ResourceName = kmsg.ConfigResourceTypeTopic, "t"
		k := kmsg.NewAlterConfigsRequestResourceConfig()
		k.Name, k.Value = "retention.ms", kmsg.StringPtr(fmt.Sprint(6000+v))
		q.Configs = append(q.Configs, k)
		req.Resources = append(req.Resources, q)
		if got := call[*kmsg.AlterConfigsResponse](c, req, v).Resources[0]; got.ErrorCode != 0 {
			t.Fatalf("version %d: error %d (%s)", v, got.ErrorCode, text(got.ErrorMessage))
		}
		r := describeConfigs(c, kmsg.ConfigResourceTypeTopic, "t", 1, "retention.ms", "segment.ms")
		if text(r.Configs[0].Value) != fmt.Sprint(6000+v) || r.Configs[1].Source == kmsg.ConfigSourceDynamicTopicConfig {
			t.Errorf("version %d: %+v", v, r.Configs)
		}
	}
}

func TestListConfigResources(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	if code, msg := alterConfigs(c, kmsg.ConfigResourceTypeGroupConfig, "g", false, change{"consumer.session.timeout.ms", "50000", 0}); code != 0 {
		t.Fatalf("group settings: error %d (%s)", code, msg)
	}
	list := func(version int16, types ...int8) string {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = types
		resp := call[*kmsg.ListConfigResourcesResponse](c, req, version)
		var out []string
		for _, r := range resp.ConfigResources {
			if !strings.HasPrefix(r.Name, "__") {
				out = append(out, fmt.Sprintf("%d:%s", r.Type, r.Name))
			}
		}
		return fmt.Sprint(resp.ErrorCode, out)
	}
	for _, tc := range []struct{ got, want string }{
		{list(0), "0 []"}, {list(1), "0 [2:t 4:1 32:g]"}, {list(1, 2), "0 [2:t]"}, {list(1, 32, 4), "0 [4:1 32:g]"}, {list(1, 7), "35 []"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}
