package kafka

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/cluster"
	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/producerids"
	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// broker is a whole broker in this process, over files in memory.
type broker struct {
	t      testing.TB
	fs     *vfs.Mem
	opts   Options
	static map[string]string
	ahead  atomic.Int64 // nanoseconds that its clock is ahead

	front  *Server
	store  *partlog.Store
	topics *topics.Catalogue
	addr   string
	stops  []func()
}

// startBroker starts a broker; change may set what is to differ.
func startBroker(t testing.TB, change ...func(*broker)) *broker {
	t.Helper()
	b := &broker{t: t, fs: vfs.NewMem(1 << 32), static: map[string]string{"offsets.topic.num.partitions": "4", "log.retention.ms": "-1"}}
	b.opts = Options{Cluster: cluster.Solo{ClusterID: "test-cluster", NodeID: 1}, LogDir: "/data"}
	for _, f := range change {
		f(b)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

func (b *broker) start() {
	b.t.Helper()
	ctx := context.Background()
	check := func(err error) {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	b.store, err = partlog.Open(ctx, partlog.Options{FS: b.fs, Dir: "data", JournalFileSize: 4 << 20, Clock: b.now, Logger: quiet})
	check(err)
	b.onStop(func() { check(b.store.Close()) })
	b.topics, err = topics.Open(ctx, topics.Options{Store: b.store, Now: b.now, Static: b.static})
	check(err)
	ids, err := producerids.Open(ctx, b.store, b.now)
	check(err)
	g, err := groups.Open(ctx, b.topics, groups.Options{Now: b.now, Log: quiet})
	check(err)
	b.onStop(g.Stop)
	x, err := txn.Open(ctx, b.topics, txn.Options{IDs: ids, Now: b.now, Log: quiet, Ended: func(e txn.Ended) {
		if e.Topic == groups.OffsetsTopic {
			g.EndTxn(e.Index, groups.Producer{ID: e.ProducerID, Epoch: e.Epoch}, e.Commit)
		}
	}})
	check(err)
	b.onStop(x.Close)
	k, err := ledgers.Open(ctx, ledgers.Options{Topics: b.topics, Now: b.now, Logger: quiet})
	check(err)
	b.onStop(k.Close)
	sg := sharegroups.Open(ctx, sharegroups.Options{Topics: b.topics, Ledgers: k, Taken: g.Exists, Now: b.now, Log: quiet})
	b.onStop(sg.Close)
	o := b.opts
	o.Topics, o.Groups, o.Txns, o.Shares, o.Now = b.topics, g, x, sg, b.now
	b.front, err = New(o)
	check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	b.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- b.front.Serve(l) }()
	b.onStop(func() {
		check(b.front.Close(ctx))
		<-served
	})
}

func (b *broker) onStop(f func()) { b.stops = append(b.stops, f) }

func (b *broker) stop() {
	for i := len(b.stops) - 1; i >= 0; i-- {
		b.stops[i]()
	}
	b.stops = nil
}

// restart stops the broker and starts it over the same files.
func (b *broker) restart() {
	b.t.Helper()
	b.stop()
	b.start()
}

// topic creates a topic; settings are key, value, key, value.
func (b *broker) topic(name string, partitions int32, settings ...string) *topics.Topic {
	b.t.Helper()
	spec := topics.Spec{Name: name, Partitions: partitions, Configs: map[string]string{}}
	for i := 0; i+1 < len(settings); i += 2 {
		spec.Configs[settings[i]] = settings[i+1]
	}
	t, err := b.topics.Create(context.Background(), spec, false)
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *broker) dial() *rawConn {
	b.t.Helper()
	return dialRaw(b.t, b.addr)
}

// client is a franz-go client of the broker.
func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr)}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// record is what batch needs to know of a record.
type record struct {
	key, value string
	ts         int64 // milliseconds after the batch's first timestamp
	nullKey    bool
}

// values makes records that have values only.
func values(vs ...string) (out []record) {
	for _, v := range vs {
		out = append(out, record{value: v, nullKey: true})
	}
	return out
}

// batch builds a record batch that starts at time ms.
func batch(t testing.TB, codec int8, ms int64, rs ...record) model.Batch {
	t.Helper()
	m := records.Plain(time.UnixMilli(ms))
	m.Compression = codec
	bl := records.NewBuilder(m)
	for _, r := range rs {
		var key []byte
		if !r.nullKey {
			key = []byte(r.key)
		}
		bl.Add(r.ts, key, []byte(r.value), nil)
	}
	b, err := bl.Build(-1)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// produceRequest asks for one batch in one partition, with acks=all.
func produceRequest(topic string, index int32, recs []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = index, recs
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// produce sends one batch and gives the answer for its partition.
func produce(c *rawConn, version int16, topic string, index int32, recs []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	resp := call[*kmsg.ProduceResponse](c, produceRequest(topic, index, recs), version)
	return resp.Topics[0].Partitions[0]
}

// produced is produce where no error is expected; it gives the base offset.
func produced(c *rawConn, topic string, index int32, recs []byte) int64 {
	c.t.Helper()
	p := produce(c, 9, topic, index, recs)
	if p.ErrorCode != codes.None {
		c.t.Fatalf("produce to %s-%d: error %d: %s", topic, index, p.ErrorCode, text(p.ErrorMessage))
	}
	return p.BaseOffset
}

func text(s *string) string {
	if s == nil {
		return "(no message)"
	}
	return *s
}

// fetchRequest asks for partitions of one topic from offset 0 on.
func fetchRequest(topic string, indexes ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 0, 1, 50<<20
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for _, i := range indexes {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.PartitionMaxBytes = i, 10<<20
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// batches cuts fetched bytes into batches.
func batches(t testing.TB, data []byte) (out []model.Batch) {
	t.Helper()
	for len(data) > 0 {
		b, rest, err := model.NextBatch(data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
		data = rest
	}
	return out
}
