package kafka

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/records"
)

// TestRow02ApiVersionsHeaderHasNoTags: a client reads it before it knows whether
// the broker has flexible headers.
func TestRow02ApiVersionsHeaderHasNoTags(t *testing.T) {
	b := startBroker(t)
	c := b.dial()
	req := versionsRequest()
	req.SetVersion(3)
	c.send(req)
	_, body := c.frame()
	if len(body) < 2 || binary.BigEndian.Uint16(body) != 0 {
		t.Fatalf("the body does not begin with the error code: %x", body[:min(8, len(body))])
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(3)
	if err := resp.ReadFrom(body); err != nil || len(resp.ApiKeys) == 0 {
		t.Errorf("%v, %d keys", err, len(resp.ApiKeys))
	}
}

// TestRow31OldVersionsAreGone: Fetch below 4 and Produce below 3 need formats that
// are not written any more. Produce 0 is advertised all the same.
func TestRow31OldVersionsAreGone(t *testing.T) {
	b := startBroker(t)
	for _, k := range call[*kmsg.ApiVersionsResponse](b.dial(), versionsRequest(), 3).ApiKeys {
		if k.ApiKey == 0 && k.MinVersion != 0 || k.ApiKey == 1 && k.MinVersion != 4 {
			t.Errorf("key %d is advertised from version %d", k.ApiKey, k.MinVersion)
		}
	}
	fetch, produce := fetchRequest("t", 0), produceRequest("t", 0, batch(t, records.None, 1, values("x")...))
	fetch.SetVersion(3)
	produce.SetVersion(2)
	for _, req := range []kmsg.Request{fetch, produce} {
		c := b.dial()
		c.send(req)
		if !c.closed() {
			t.Errorf("key %d version %d left the connection open", req.Key(), req.GetVersion())
		}
	}
}

// TestProduceElementsAreBounded: a produce request of very many empty partitions ends
// its connection before it becomes memory.
func TestProduceElementsAreBounded(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	req := produceRequest("t", 0, nil)
	req.Topics[0].Partitions = make([]kmsg.ProduceRequestTopicPartition, 1_000_001)
	req.SetVersion(9)
	c := b.dial()
	_, _ = c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1))
	if !c.closed() {
		t.Error("the connection is open")
	}
}

// FuzzCheckBatch: what is accepted is one whole batch with a right checksum, no
// larger than the topic's limit, and with well-formed records where they were looked at.
func FuzzCheckBatch(f *testing.F) {
	b := startBroker(f)
	topics := map[bool][]string{
		false: {"cleanup.policy", "delete"},
		true:  {"cleanup.policy", "compact", "compression.type", "lz4"},
	}
	plain, strict := b.topic("plain", 1, topics[false]...), b.topic("strict", 1, topics[true]...)
	for codec := records.None; codec <= records.Zstd; codec++ {
		f.Add([]byte(batch(f, codec, 1000, record{key: "k", value: "v"}, record{key: "l"})), true)
		f.Add([]byte(batch(f, codec, 1000, values("x", "y")...)), false)
	}
	f.Fuzz(func(t *testing.T, recs []byte, looked bool) {
		topic := plain
		if looked {
			topic = strict
		}
		in := bytes.Clone(recs)
		got, err := checkBatch(topic, recs, 9, b.now())
		if err != nil {
			return
		}
		if got.Size() != len(got) || !got.ValidCRC() || len(got) > topic.Config.MaxMessageBytes {
			t.Fatalf("accepted %x", in)
		}
		if !looked && !bytes.Equal(got, in) {
			t.Fatal("a batch that is stored as sent was changed")
		}
		if looked && records.Check(got, 0) != nil {
			t.Fatalf("accepted records that cannot be read: %x", in)
		}
	})
}
