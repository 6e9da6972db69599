package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/daybooktest"
	"github.com/daybook-mq/daybook/internal/cli"
)

// TestHistogram: every quantile lies within 1 % above the true one, and no
// value leaves the buckets.
func TestHistogram(t *testing.T) {
	for _, top := range []int64{100, 1e6, 1e9, 1 << 62} {
		rng := rand.New(rand.NewPCG(1, uint64(top)))
		var h Histogram
		var all []int64
		for range 20_000 {
			n := rng.Int64N(top)
			all = append(all, n)
			h.Record(time.Duration(n))
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[max(int(q*float64(len(all))+0.9999)-1, 0)]
			got := int64(h.Quantile(q))
			if got < want || float64(got) > float64(want)*1.01+1 {
				t.Errorf("up to %d, quantile %g: %d, want %d to 1 %% more", top, q, got, want)
			}
		}
	}
	var h Histogram
	h.Record(-time.Second)
	if h.Quantile(1) != 0 || new(Histogram).Quantile(0.5) != 0 {
		t.Error("a negative duration, or none, is not zero")
	}
}

func TestBucketsAreInOrder(t *testing.T) {
	last := -1
	for _, n := range []uint64{0, 1, 127, 128, 129, 255, 256, 257, 1 << 20, 1<<20 + 1<<13, 1<<63 - 1} {
		b := bucketOf(n)
		if b <= last && n != 257 || b >= len(Histogram{}.buckets) {
			t.Errorf("bucket of %d is %d, after %d", n, b, last)
		}
		if up := upperBound(b); up < int64(n) {
			t.Errorf("bucket of %d ends at %d", n, up)
		}
		last = b
	}
}

func globals(addr string) (*cli.Globals, *bytes.Buffer) {
	var out bytes.Buffer
	g := cli.NewGlobals()
	g.Bootstrap, g.Output, g.Out, g.Err = addr, "json", &out, &bytes.Buffer{}
	return g, &out
}

func small() Load {
	return Load{Partitions: 4, Records: 2000, Size: 100, Producers: 2, Acks: "all", Compression: "none", BatchBytes: 1 << 20}
}

func decode[T any](t *testing.T, out *bytes.Buffer) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestProduce(t *testing.T) {
	g, out := globals(daybooktest.Start(t).Addr())
	if err := Produce(t.Context(), g, ProduceOptions{Load: small(), Disk: t.TempDir(), GroupBytes: 4096}); err != nil {
		t.Fatal(err)
	}
	r := decode[ProduceResult](t, out)
	if r.Records != 2000 || r.Bytes != 200_000 || r.Partitions != 4 || r.Latency.Count != 2000 || r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P99 {
		t.Errorf("%+v %+v", r, r.Latency)
	}
	if r.Disk == nil || r.Disk.GroupBytes != 4096 || r.Disk.Bytes < 200_000-4096 || r.Ratio <= 0 {
		t.Errorf("disk %+v, ratio %g", r.Disk, r.Ratio)
	}
}

func TestProduceNeedsGroupSize(t *testing.T) {
	g, _ := globals(daybooktest.Start(t).Addr())
	err := Produce(t.Context(), g, ProduceOptions{Load: small(), Disk: t.TempDir(), Metrics: "http://127.0.0.1:1/metrics"})
	if err == nil || !strings.Contains(err.Error(), "size of the broker's groups is not known") {
		t.Errorf("%v", err)
	}
}

func TestConsume(t *testing.T) {
	g, out := globals(daybooktest.Start(t).Addr())
	if err := Consume(t.Context(), g, ConsumeOptions{Load: small(), Consumers: 3, FetchBytes: 1 << 20, PartBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	r := decode[ConsumeResult](t, out)
	if r.Records != 2000 || r.Bytes != 200_000 || r.Produced.Records != 2000 || r.Ratio <= 0 {
		t.Errorf("%+v", r)
	}
}

func TestLatency(t *testing.T) {
	g, out := globals(daybooktest.Start(t).Addr())
	l := small()
	l.Records, l.Rate = 200, 1000
	if err := Latency(t.Context(), g, LatencyOptions{Load: l, EndToEnd: true, Disk: t.TempDir(), Group: 4096}); err != nil {
		t.Fatal(err)
	}
	r := decode[LatencyResult](t, out)
	if r.Records != 200 || r.Acked.Count != 200 || r.Delivered.Count != 200 || r.RatioP99 <= 0 {
		t.Errorf("%+v", r)
	}
	if r.Seconds < 0.15 {
		t.Errorf("200 records at 1000 a second took %g s", r.Seconds)
	}
}

func TestTxn(t *testing.T) {
	g, out := globals(daybooktest.Start(t).Addr())
	o := TxnOptions{Load: small(), Transactions: 10, PerTransaction: 7}
	o.Producers = 2
	if err := Txn(t.Context(), g, o); err != nil {
		t.Fatal(err)
	}
	r := decode[TxnResult](t, out)
	if r.Transactions != 10 || r.Latency.Count != 10 || r.Workers != 2 || r.TxnsPerSec <= 0 {
		t.Errorf("%+v", r)
	}
}

// TestStallCounts: records that are due while the broker is away have the whole
// wait in their latency, also those that the client could not yet send.
func TestStallCounts(t *testing.T) {
	const stall = 400 * time.Millisecond
	b := daybooktest.Start(t)
	g, _ := globals(b.Addr())
	l := small()
	l.Producers, l.Rate, l.Records, l.Duration = 1, 500, 0, 1500*time.Millisecond
	conn, err := g.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	topic, undo, err := l.topic(t.Context(), g, conn)
	if err != nil {
		t.Fatal(err)
	}
	defer undo()
	// The broker is away while the records 150 to 349 are due.
	down, up := make(chan struct{}), make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-down
		b.Kill()
		<-up
		b.Restart()
	}()
	n := 0
	s, err := send(t.Context(), g, l, topic, func(*kgo.Record, time.Time) {
		switch n++; n {
		case 150:
			close(down)
		case 350:
			close(up)
		}
	})
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	// 400 of 1500 ms: a quarter of the records waits, evenly from the whole stall to nothing.
	if s.acked.Load() < 700 || s.latency.Quantile(0.90) < stall/4 || time.Duration(s.latency.max.Load()) < stall/2 {
		t.Errorf("%d records, %s", s.acked.Load(), s.latency.Quantiles())
	}
}

func TestDisk(t *testing.T) {
	g, out := globals("")
	if err := Disk(t.Context(), g, DiskLoad{Dir: t.TempDir(), Bytes: 1 << 20, GroupBytes: 3000}); err != nil {
		t.Fatal(err)
	}
	r := decode[DiskResult](t, out)
	if r.Syncs != 350 || r.Bytes != 350*3000 || r.Sync.Count != 350 || r.MBPerSec <= 0 {
		t.Errorf("%+v", r)
	}
	if err := Disk(t.Context(), g, DiskLoad{Dir: "/no/such/dir", Bytes: 4096, GroupBytes: 4096}); err == nil {
		t.Error("a directory that is not there can be measured")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureDisk(ctx, DiskLoad{Dir: t.TempDir(), Bytes: 1 << 30, GroupBytes: 4096}); err == nil {
		t.Error("an interruption is not heeded")
	}
}

func TestBrokerUse(t *testing.T) {
	u := use(cli.Metrics{metricData: 100}, cli.Metrics{metricSyncs: 4, metricData: 500, metricWritten: 440, metricSegments: 60})
	if *u != (BrokerUse{Syncs: 4, DataBytes: 400, BytesPerSync: 100, WrittenBytes: 500, Amplification: 1.25}) {
		t.Errorf("%+v", *u)
	}
}
