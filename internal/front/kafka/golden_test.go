package kafka

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/records"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// goldenDir holds requests as franz-go's codec writes them, and this broker's
// answers, one file for each API key: what is on the wire must not change unseen.
const goldenDir = "../../../test/captures/kmsg"

// maskedID stands for the topic's id, which is random.
var maskedID = []byte("<the topic's id>")

// goldenRequests gives a request for each key whose answer is the same every time.
func goldenRequests(t *testing.T, id [16]byte) []kmsg.Request {
	fetch := fetchRequest("events", 0, 1)
	fetch.Topics[0].TopicID = id
	produce := produceRequest("events", 0, batch(t, records.None, 1_700_000_000_000, record{key: "k", value: "v"}, record{nullKey: true, value: "w"}))
	produce.Topics[0].TopicID = id
	offsets := kmsg.NewPtrListOffsetsRequest()
	offsets.ReplicaID = -1
	for _, ts := range []int64{tsLatest, tsEarliest, 1_700_000_000_000} {
		q := kmsg.NewListOffsetsRequestTopic()
		q.Topic = "events"
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp, p.CurrentLeaderEpoch = ts, -1
		q.Partitions = append(q.Partitions, p)
		offsets.Topics = append(offsets.Topics, q)
	}
	epoch := kmsg.NewPtrOffsetForLeaderEpochRequest()
	epoch.ReplicaID = -1
	et := kmsg.NewOffsetForLeaderEpochRequestTopic()
	et.Topic = "events"
	et.Partitions = append(et.Partitions, kmsg.NewOffsetForLeaderEpochRequestTopicPartition())
	epoch.Topics = append(epoch.Topics, et)
	coordinator := kmsg.NewPtrFindCoordinatorRequest()
	coordinator.CoordinatorKey, coordinator.CoordinatorKeys = "g", []string{"g"}
	committed := kmsg.NewPtrOffsetFetchRequest()
	committed.Group = "g"
	cg := kmsg.NewOffsetFetchRequestGroup()
	cg.Group = "g"
	committed.Groups = append(committed.Groups, cg)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = append(create.Topics, newTopic("events", 1, 1))
	describe := kmsg.NewPtrDescribeTopicPartitionsRequest()
	describe.ResponsePartitionLimit = 1
	dt := kmsg.NewDescribeTopicPartitionsRequestTopic()
	dt.Topic = "events"
	describe.Topics = append(describe.Topics, dt)
	delete := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = "events"
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = 1
	rt.Partitions = append(rt.Partitions, rp)
	delete.Topics = append(delete.Topics, rt)
	return []kmsg.Request{
		produce, fetch, offsets, metadataRequest("events", "missing"), epoch, coordinator, committed,
		create, kmsg.NewPtrDescribeClusterRequest(), describe, kmsg.NewPtrListPartitionReassignmentsRequest(), delete,
	}
}

func TestGoldenBytes(t *testing.T) {
	b := startBroker(t, func(b *broker) {
		b.opts.Advertise = "broker.example:9092"
		b.static["auto.create.topics.enable"] = "false"
	})
	id := b.topic("events", 2).ID
	mask := func(b []byte) []byte { return bytes.ReplaceAll(b, id[:], maskedID) }
	for _, req := range goldenRequests(t, id) {
		file := filepath.Join(goldenDir, fmt.Sprintf("%02d_%s.txt", req.Key(), strings.ToLower(kmsg.NameForKey(req.Key()))))
		api, ok := b.front.net.Table().Lookup(req.Key())
		if !ok {
			t.Fatalf("key %d is not served", req.Key())
		}
		var got strings.Builder
		c := b.dial()
		for v := api.Min; v <= api.Max; v++ {
			req.SetVersion(v)
			frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("golden")).AppendRequest(nil, req, int32(v))
			if _, err := c.Write(frame); err != nil {
				t.Fatal(err)
			}
			corr, body := c.frame()
			resp := append(binary.BigEndian.AppendUint32(nil, uint32(corr)), body...)
			fmt.Fprintf(&got, "version %d\n%s%s", v, section("request", mask(frame[4:])), section("response", mask(resp)))
		}
		compareGolden(t, file, got.String())
	}
}

// section writes bytes in lines of 32.
func section(name string, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %d bytes\n", name, len(b))
	for len(b) > 0 {
		n := min(32, len(b))
		fmt.Fprintf(&s, "  %s\n", hex.EncodeToString(b[:n]))
		b = b[n:]
	}
	return s.String()
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./internal/front/kafka -run Golden -rewrite writes it)", err)
	}
	if string(want) == got {
		return
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			t.Errorf("%s:%d: the bytes on the wire have changed\n got %s\nwant %s", file, i+1, g[i], w[i])
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", file, len(g), len(w))
}
