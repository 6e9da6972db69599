package kafka

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

func TestProduceAndFetchWithARealClient(t *testing.T) {
	b := startBroker(t)
	b.topic("events", 3)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p := b.client(kgo.DefaultProduceTopic("events"), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()))
	const n = 300
	for i := range n {
		p.Produce(ctx, &kgo.Record{Key: []byte{byte(i)}, Value: []byte("v")}, nil)
	}
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	c := b.client(kgo.ConsumeTopics("events"))
	for got := 0; got < n; {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		got += fs.NumRecords()
	}
}

func TestProduceEveryVersion(t *testing.T) {
	b := startBroker(t)
	id := b.topic("t", 1).ID
	c := b.dial()
	for v := int16(3); v <= 13; v++ {
		req := produceRequest("t", 0, batch(t, records.None, 1000, values("x", "y")...))
		if v >= 13 {
			req.Topics[0].Topic, req.Topics[0].TopicID = "", id
		}
		p := call[*kmsg.ProduceResponse](c, req, v).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(v-3)*2 || p.LogAppendTime != -1 {
			t.Errorf("version %d: %+v", v, p)
		}
	}
}

// edit is a batch with some header bytes changed and its checksum redone.
func edit(b model.Batch, change func(model.Batch)) model.Batch {
	change(b)
	b.SealCRC()
	return b
}

func TestRow04OneMagic2BatchPerPartition(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	one := func() model.Batch { return batch(t, records.None, 1000, values("x")...) }
	old := edit(one(), func(m model.Batch) { m[16] = 1 })
	for name, tc := range map[string]struct {
		recs []byte
		want codes.Code
	}{
		"none":           {nil, codes.InvalidRecord},
		"empty":          {[]byte{}, codes.InvalidRecord},
		"two":            {append(one(), one()...), codes.InvalidRecord},
		"old format":     {old, codes.InvalidRecord},
		"cut off":        {one()[:65], codes.CorruptMessage},
		"shorter header": {one()[:30], codes.CorruptMessage},
	} {
		if p := produce(c, 9, "t", 0, tc.recs); p.ErrorCode != tc.want || text(p.ErrorMessage) == "" || p.BaseOffset != -1 {
			t.Errorf("%s: error %d (%s), want %d", name, p.ErrorCode, text(p.ErrorMessage), tc.want)
		}
	}
	if base := produced(c, "t", 0, one()); base != 0 {
		t.Errorf("base offset %d after refusals, want 0", base)
	}
}

func TestRow04ZstdNeedsVersion7(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	for _, tc := range []struct {
		version int16
		want    codes.Code
	}{{6, codes.UnsupportedCompressionType}, {7, codes.None}} {
		if p := produce(c, tc.version, "t", 0, batch(t, records.Zstd, 1, values("x")...)); p.ErrorCode != tc.want {
			t.Errorf("version %d: error %d, want %d", tc.version, p.ErrorCode, tc.want)
		}
	}
	bad := edit(batch(t, records.None, 1, values("x")...), func(m model.Batch) { m[22] |= 5 })
	if p := produce(c, 9, "t", 0, bad); p.ErrorCode != codes.UnsupportedCompressionType {
		t.Errorf("codec 5: error %d", p.ErrorCode)
	}
}

func TestRow04RequiredAcks(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	for acks, want := range map[int16]codes.Code{1: 0, -1: 0, 2: codes.InvalidRequiredAcks, -2: codes.InvalidRequiredAcks} {
		req := produceRequest("t", 0, batch(t, records.None, 1, values("x")...))
		req.Acks = acks
		if p := call[*kmsg.ProduceResponse](c, req, 9).Topics[0].Partitions[0]; p.ErrorCode != want {
			t.Errorf("acks %d: error %d, want %d", acks, p.ErrorCode, want)
		}
	}
}

// TestRow04AcksZero: no answer, and the connection ends on an error.
func TestRow04AcksZero(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	req := produceRequest("t", 0, batch(t, records.None, 1, values("x")...))
	req.Acks = 0
	req.SetVersion(9)
	c.send(req)
	meta := call[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 9) // the next answer is this one's
	if len(meta.Topics) == 0 {
		t.Fatal("no metadata")
	}
	if off := listOffset(c, "t", 0, tsLatest, 0, 5); off.Offset != 1 {
		t.Errorf("end offset %d, want 1", off.Offset)
	}
	bad := produceRequest("missing", 0, batch(t, records.None, 1, values("x")...))
	bad.Acks = 0
	bad.SetVersion(9)
	c.send(bad)
	if !c.closed() {
		t.Error("the connection is open after an error that the client cannot be told")
	}
}

func TestRow05ChecksumCoversAttributesToEnd(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	good := batch(t, records.None, 1, values("abc")...)
	for at := 17; at < len(good); at++ {
		if at >= 21 && at < 23 {
			continue // attributes decide what else is wrong
		}
		bad := append(model.Batch(nil), good...)
		bad[at] ^= 0x40
		if p := produce(c, 9, "t", 0, bad); p.ErrorCode != codes.CorruptMessage {
			t.Fatalf("byte %d changed: error %d (%s)", at, p.ErrorCode, text(p.ErrorMessage))
		}
	}
	outside := append(model.Batch(nil), good...)
	outside.SetLeaderEpoch(77)
	produced(c, "t", 0, outside)
}

func TestRow06HeadersThatClientsMayNotSend(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	be := binary.BigEndian
	for name, change := range map[string]func(model.Batch){
		"control batch":          func(m model.Batch) { m[22] |= 0x20 },
		"count above the range":  func(m model.Batch) { be.PutUint32(m[57:], 3) },
		"range above the count":  func(m model.Batch) { be.PutUint32(m[23:], 5) },
		"no records":             func(m model.Batch) { be.PutUint32(m[57:], 0) },
		"negative count":         func(m model.Batch) { be.PutUint32(m[57:], 0xffffffff) },
		"base offset":            func(m model.Batch) { m.SetBaseOffset(3) },
		"sequence below 0":       func(m model.Batch) { be.PutUint64(m[43:], 9); be.PutUint16(m[51:], 0) },
		"producer epoch below 0": func(m model.Batch) { be.PutUint64(m[43:], 9); be.PutUint32(m[53:], 0) },
		"transaction of nobody":  func(m model.Batch) { m[22] |= 0x10 },
	} {
		bad := edit(batch(t, records.None, 1, values("x", "y")...), change)
		if p := produce(c, 9, "t", 0, bad); p.ErrorCode != codes.InvalidRecord {
			t.Errorf("%s: error %d (%s), want INVALID_RECORD", name, p.ErrorCode, text(p.ErrorMessage))
		}
	}
	trailing := append(batch(t, records.None, 1, values("x")...), 0, 0, 0)
	if p := produce(c, 9, "t", 0, trailing); p.ErrorCode != codes.InvalidRecord {
		t.Errorf("trailing bytes: error %d", p.ErrorCode)
	}
	if w := b.watermark("t", 0); w != 0 {
		t.Errorf("%d records were appended", w)
	}
}

func (b *broker) watermark(topic string, index int32) int64 {
	t, _ := b.topics.ByName(topic)
	p, _ := t.Partition(index)
	return int64(p.Watermarks().HighWatermark)
}

func TestRow07CompactedTopicNeedsKeys(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "cleanup.policy", "compact")
	c := b.dial()
	mixed := []record{{key: "a"}, {nullKey: true}, {key: ""}, {nullKey: true}}
	for _, codec := range []int8{records.None, records.Gzip, records.Snappy, records.Lz4, records.Zstd} {
		p := produce(c, 8, "t", 0, batch(t, codec, 1, mixed...))
		if p.ErrorCode != codes.InvalidRecord || len(p.ErrorRecords) != 2 ||
			p.ErrorRecords[0].RelativeOffset != 1 || p.ErrorRecords[1].RelativeOffset != 3 {
			t.Errorf("codec %d: error %d, records %+v", codec, p.ErrorCode, p.ErrorRecords)
		}
	}
	if w := b.watermark("t", 0); w != 0 {
		t.Errorf("%d records were appended", w)
	}
	produced(c, "t", 0, batch(t, records.None, 1, record{key: "a"}, record{key: ""}))
}

func TestRow08LogAppendTime(t *testing.T) {
	b := startBroker(t)
	b.topic("append", 1, "message.timestamp.type", "LogAppendTime")
	b.topic("create", 1)
	c := b.dial()
	before := time.Now().UnixMilli()
	p := produce(c, 9, "append", 0, batch(t, records.None, 1000, values("x", "y")...))
	if p.ErrorCode != 0 || p.LogAppendTime < before {
		t.Fatalf("%+v, want an append time of at least %d", p, before)
	}
	got := fetchOne(t, c, "append", 0)
	if !got.IsLogAppendTime() || got.MaxTimestamp() != p.LogAppendTime || !got.ValidCRC() {
		t.Errorf("stored batch: append time %v, max timestamp %d, checksum right %v", got.IsLogAppendTime(), got.MaxTimestamp(), got.ValidCRC())
	}
	if p := produce(c, 9, "create", 0, batch(t, records.None, 1000, values("x")...)); p.LogAppendTime != -1 {
		t.Errorf("create time: append time %d, want -1", p.LogAppendTime)
	}
	if got := fetchOne(t, c, "create", 0); got.IsLogAppendTime() || got.MaxTimestamp() != 1000 {
		t.Errorf("create time: stored %v %d", got.IsLogAppendTime(), got.MaxTimestamp())
	}
}

// fetchOne fetches the one batch of a partition.
func fetchOne(t *testing.T, c *rawConn, topic string, index int32) model.Batch {
	t.Helper()
	resp := call[*kmsg.FetchResponse](c, fetchRequest(topic, index), 11)
	list := batches(t, resp.Topics[0].Partitions[0].RecordBatches)
	if len(list) != 1 {
		t.Fatalf("%d batches, want 1", len(list))
	}
	return list[0]
}

func TestRow09TooLargeSaysHowMuch(t *testing.T) {
	b := startBroker(t)
	b.topic("small", 1, "max.message.bytes", "1000")
	c := b.dial()
	big := batch(t, records.None, 1, values(strings.Repeat("x", 2000))...)
	p := produce(c, 9, "small", 0, big)
	if p.ErrorCode != codes.MessageTooLarge {
		t.Fatalf("error %d", p.ErrorCode)
	}
	for _, part := range []string{"2070", "1000", `"small"`, "max.message.bytes"} {
		if !strings.Contains(text(p.ErrorMessage), part) {
			t.Errorf("the message lacks %s: %s", part, text(p.ErrorMessage))
		}
	}
	fits := batch(t, records.None, 1, values(strings.Repeat("x", 930))...)
	if len(fits) != 1000 {
		t.Fatalf("the batch has %d bytes", len(fits))
	}
	produced(c, "small", 0, fits)
}

func TestTimestampLimits(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1, "message.timestamp.before.max.ms", "60000", "message.timestamp.after.max.ms", "60000")
	b.topic("stamped", 1, "message.timestamp.type", "LogAppendTime", "message.timestamp.before.max.ms", "1")
	c := b.dial()
	now := time.Now().UnixMilli()
	for name, tc := range map[string]struct {
		ms   int64
		want codes.Code
		bad  int
	}{
		"now":               {now, 0, 0},
		"all in the future": {now + 120_000, codes.InvalidTimestamp, 2},
		"one in the future": {now + 50_000, codes.InvalidTimestamp, 1},
		"all in the past":   {now - 200_000, codes.InvalidTimestamp, 2},
	} {
		p := produce(c, 9, "t", 0, batch(t, records.Lz4, tc.ms, record{key: "a"}, record{key: "b", ts: 40_000}))
		if p.ErrorCode != tc.want || len(p.ErrorRecords) != tc.bad {
			t.Errorf("%s: error %d (%s), %d records, want %d and %d", name, p.ErrorCode, text(p.ErrorMessage), len(p.ErrorRecords), tc.want, tc.bad)
		}
	}
	produced(c, "stamped", 0, batch(t, records.None, 5, values("x")...))
}

func TestRow31RecompressesOnlyWhenTheTopicSaysSo(t *testing.T) {
	b := startBroker(t)
	all := map[string]int8{"uncompressed": records.None, "gzip": records.Gzip, "snappy": records.Snappy, "lz4": records.Lz4, "zstd": records.Zstd}
	c := b.dial()
	for name, codec := range all {
		b.topic(name, 1, "compression.type", name)
		for i, from := range all {
			produced(c, name, 0, batch(t, from, 1000, record{key: i, value: strings.Repeat(i, 50)}, record{key: "k"}))
		}
		resp := call[*kmsg.FetchResponse](c, fetchRequest(name, 0), 11)
		list := batches(t, resp.Topics[0].Partitions[0].RecordBatches)
		if len(list) != len(all) {
			t.Fatalf("%s: %d batches", name, len(list))
		}
		for _, got := range list {
			if got.Compression() != codec || !got.ValidCRC() {
				t.Errorf("%s: codec %d, checksum right %v", name, got.Compression(), got.ValidCRC())
			}
			if err := records.Check(got, 0); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	b.topic("as-sent", 1)
	sent := batch(t, records.Zstd, 1000, record{key: "k"})
	produced(c, "as-sent", 0, append(model.Batch(nil), sent...))
	if got := fetchOne(t, c, "as-sent", 0); string(got.Payload()) != string(sent.Payload()) {
		t.Error("a batch was changed in a topic that keeps the producer's compression")
	}
	bad := edit(batch(t, records.None, 1, values("x")...), func(m model.Batch) { m[61] = 99 })
	if p := produce(c, 9, "gzip", 0, bad); p.ErrorCode != codes.InvalidRecord {
		t.Errorf("unreadable records: error %d", p.ErrorCode)
	}
}

func TestProduceErrorsStayWithTheirPartition(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	b.topic("many", 1, "min.insync.replicas", "2")
	c := b.dial()
	req := produceRequest("t", 1, batch(t, records.None, 1, values("x")...))
	for _, name := range []string{"missing", "many", "__consumer_offsets"} {
		req.Topics = append(req.Topics, produceRequest(name, 0, batch(t, records.None, 1, values("x")...)).Topics...)
	}
	req.Topics = append(req.Topics, produceRequest("t", 9, batch(t, records.None, 1, values("x")...)).Topics...)
	want := []codes.Code{0, codes.UnknownTopicOrPartition, codes.NotEnoughReplicas, codes.InvalidTopicException, codes.UnknownTopicOrPartition}
	resp := call[*kmsg.ProduceResponse](c, req, 9)
	for i, code := range want {
		p := resp.Topics[i].Partitions[0]
		if p.ErrorCode != code || (code != 0) != (p.ErrorMessage != nil) {
			t.Errorf("%s: error %d (%s), want %d", resp.Topics[i].Topic, p.ErrorCode, text(p.ErrorMessage), code)
		}
	}
	req = produceRequest("", 0, batch(t, records.None, 1, values("x")...))
	req.Topics[0].TopicID = [16]byte{1}
	if p := call[*kmsg.ProduceResponse](c, req, 13).Topics[0].Partitions[0]; p.ErrorCode != codes.UnknownTopicID {
		t.Errorf("unknown id: error %d", p.ErrorCode)
	}
}

func TestAssumedReplicasSatisfyMinInsync(t *testing.T) {
	b := startBroker(t, func(b *broker) { b.opts.AssumeReplicas = true })
	b.topic("many", 1, "min.insync.replicas", "2")
	produced(b.dial(), "many", 0, batch(t, records.None, 1, values("x")...))
}

func FuzzCountProduce(f *testing.F) {
	for _, v := range []int16{3, 9, 13} {
		req := produceRequest("t", 0, []byte("records"))
		req.SetVersion(v)
		f.Add(req.AppendTo(nil), v)
	}
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		if version < 3 || version > 13 {
			return
		}
		n, err := countProduce(version, body)
		if n > len(body) {
			t.Fatalf("%d elements in %d bytes", n, len(body))
		}
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		if req.ReadFrom(body) != nil || err != nil {
			return
		}
		parts := len(req.Topics)
		for _, t := range req.Topics {
			parts += len(t.Partitions)
		}
		if parts > n {
			t.Fatalf("counted %d elements, decoding gives %d", n, parts)
		}
	})
}
