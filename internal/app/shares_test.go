package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// post asks the HTTP front to do something.
func post(t *testing.T, b *Broker, path, contentType, body string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Post("http://"+b.Addrs().HTTP+path, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// shareTopic makes topic work with n partitions and settings for group g.
func shareTopic(t *testing.T, b *Broker, n int32, settings map[string]string) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs().Kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), n, 1, nil, "work"); err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeGroupConfig, "g"
	for name, value := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, &value
		res.Configs = append(res.Configs, c)
	}
	req.Resources = append(req.Resources, res)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil || resp.Resources[0].ErrorCode != 0 {
		t.Fatal(err, resp)
	}
	return cl
}

func sharer(t *testing.T, b *Broker) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs().Kafka), kgo.ShareGroup("g"), kgo.ConsumeTopics("work"),
		kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict(), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// next polls one record and settles it.
func next(t *testing.T, cl *kgo.Client, status kgo.AckStatus) *kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		fs := cl.PollRecords(ctx, 1)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		if rs := fs.Records(); len(rs) > 0 {
			rs[0].Ack(status)
			if err := cl.FlushAcks(ctx); err != nil {
				t.Fatal(err)
			}
			return rs[0]
		}
	}
}

func send(t *testing.T, cl *kgo.Client, partition int32, value string) {
	t.Helper()
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "work", Partition: partition, Key: []byte("k"), Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// A record that was rejected comes again after a redrive, to its group alone; a
// parked key opens.
func TestRedriveAndUnpark(t *testing.T) {
	b := start(t, options(vfs.NewMem(0)))
	cl := shareTopic(t, b, 1, map[string]string{"share.auto.offset.reset": "earliest", "daybook.share.order": "key", "daybook.share.park": "true"})
	send(t, cl, 0, "bad")
	send(t, cl, 0, "later")
	s := sharer(t, b)
	if r := next(t, s, kgo.AckReject); string(r.Value) != "bad" {
		t.Fatalf("first %s", r.Value)
	}
	if code, body := post(t, b, "/api/share-groups/g/unpark", "application/json", "{}"); code != 200 || !strings.Contains(body, `"keys": 1`) {
		t.Fatal(code, body)
	}
	if r := next(t, s, kgo.AckAccept); string(r.Value) != "later" {
		t.Fatalf("after unpark %s", r.Value)
	}
	if code, body := post(t, b, "/api/share-groups/g/redrive", "application/json", `{"topic":"work","partition":0,"offsets":[0,7]}`); code != 200 || !strings.Contains(body, `"reopened": 1`) {
		t.Fatal(code, body)
	}
	if r := next(t, s, kgo.AckAccept); string(r.Value) != "bad" || r.DeliveryCount() != 1 {
		t.Fatalf("redriven: %s, delivery %d", r.Value, r.DeliveryCount())
	}
	for path, want := range map[string]int{"/api/share-groups/none/unpark": 404, "/api/nothing": 404, "/api/share-groups/g/redrive": 400} {
		if code, body := post(t, b, path, "application/json", "nonsense"); code != want {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
	}
	if code, _ := post(t, b, "/api/share-groups/g/unpark", "text/plain", "{}"); code != 415 {
		t.Errorf("a form's content type: %d", code)
	}
}

func TestHigherPartitionsComeFirst(t *testing.T) {
	b := start(t, options(vfs.NewMem(0)))
	cl := shareTopic(t, b, 3, map[string]string{"share.auto.offset.reset": "earliest", "daybook.share.priority": "partition"})
	for p := range int32(3) {
		for i := range 2 {
			send(t, cl, p, fmt.Sprint(p, "/", i))
		}
	}
	s := sharer(t, b)
	var got []int32
	for range 6 {
		got = append(got, next(t, s, kgo.AckAccept).Partition)
	}
	if fmt.Sprint(got) != "[2 2 1 1 0 0]" {
		t.Fatalf("partitions in order of delivery: %v", got)
	}
}

// With a single active member the other gets nothing until the first has left.
func TestSingleActiveMember(t *testing.T) {
	b := start(t, options(vfs.NewMem(0)))
	cl := shareTopic(t, b, 1, map[string]string{"share.auto.offset.reset": "earliest", "daybook.share.single.active": "true"})
	first := sharer(t, b)
	send(t, cl, 0, "a")
	next(t, first, kgo.AckAccept)
	second := sharer(t, b)
	waiting := make(chan *kgo.Record, 1)
	go func() { waiting <- next(t, second, kgo.AckAccept) }()
	for i := range 5 {
		send(t, cl, 0, fmt.Sprint(i))
		if r := next(t, first, kgo.AckAccept); string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("the active member got %s", r.Value)
		}
	}
	first.Close()
	send(t, cl, 0, "last")
	if r := <-waiting; string(r.Value) != "last" {
		t.Fatalf("the second member got %s", r.Value)
	}
}
