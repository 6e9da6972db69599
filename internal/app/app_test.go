package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are a broker on memory, on free ports.
func options(fs vfs.FS) Options {
	c := config.Default()
	c.KafkaAddr, c.HTTPAddr, c.DataDir = "127.0.0.1:0", "127.0.0.1:0", "data"
	return Options{Config: c, FS: fs, Log: slog.New(slog.DiscardHandler), Version: "test", JournalFileSize: 4 << 20}
}

func start(t *testing.T, o Options) *Broker {
	t.Helper()
	b, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopNow(t, b) })
	return b
}

func stopNow(t *testing.T, b *Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// get asks the HTTP front.
func get(t *testing.T, b *Broker, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + b.Addrs().HTTP + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// produce writes one record to topic orders.
func produce(t *testing.T, b *Broker, value string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs().Kafka), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestReadinessMetricsAndDebugPages(t *testing.T) {
	b := start(t, options(vfs.NewMem(0)))
	produce(t, b, "hello")
	for _, c := range []struct {
		path   string
		status int
		want   []string
	}{
		{"/readyz", 200, []string{"ready"}},
		{"/metrics", 200, []string{"daybook_serving 1", "daybook_produced_records_total 1", "daybook_journal_sync_seconds_count", `daybook_disk_state{state="ok"} 1`, "daybook_topics 4"}},
		{"/debug/partition/orders/0", 200, []string{`"HighWatermark": 1`}},
		{"/debug/partition/orders/9", 404, []string{"orders"}},
		{"/debug/partition/orders/x", 404, []string{"orders"}},
		{"/debug/partition/none/0", 404, []string{"none"}},
		{"/debug/group/none", 404, []string{"none"}},
		{"/debug/journal", 200, []string{"Frames"}},
		{"/debug/pages", 404, []string{"partition/"}},
	} {
		status, body := get(t, b, c.path)
		if status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.path, status, c.status, body)
		}
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%.2000s", c.path, want, body)
			}
		}
	}
}

func TestAStartedBrokerKeepsItsIdentityAndItsData(t *testing.T) {
	fs := vfs.NewMem(0)
	first := start(t, options(fs))
	produce(t, first, "one")
	id := first.meta.ClusterID
	stopNow(t, first)
	second := start(t, options(fs))
	if second.meta.ClusterID != id || id == "" {
		t.Errorf("cluster id %q became %q", id, second.meta.ClusterID)
	}
	produce(t, second, "two")
	if _, body := get(t, second, "/debug/partition/orders/0"); !strings.Contains(body, `"HighWatermark": 2`) {
		t.Errorf("after a restart:\n%s", body)
	}
}

func TestDirectoriesThatCannotBeUsed(t *testing.T) {
	used := vfs.NewMem(0)
	stopNow(t, start(t, options(used)))
	meta := func(text string) func(*Options) {
		return func(o *Options) {
			if err := replaceFile(used, "data", metaName, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   []string
	}{
		{"another node's", func(o *Options) { o.Config.NodeID = 2 }, []string{"belongs to node 1", "--node-id 1", "--data"}},
		{"of the future", meta(`{"format": 2, "cluster_id": "x", "node_id": 1}`), []string{"format 2", "newer", "--data"}},
		{"damaged identity", meta(`{"format": 1}`), []string{"meta.json", "damaged", "backup"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(used)
			c.change(&o)
			b, err := Start(t.Context(), o)
			if err == nil {
				stopNow(t, b)
				t.Fatal("started")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestALockedDirectoryIsRefused(t *testing.T) {
	fs := vfs.NewMem(0)
	start(t, options(fs))
	_, err := Start(t.Context(), options(fs))
	if err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("error %v", err)
	}
}

func TestFrontsCanBeOff(t *testing.T) {
	o := options(vfs.NewMem(0))
	o.Config.KafkaAddr, o.Config.HTTPAddr = config.Off, config.Off
	b := start(t, o)
	if b.Addrs() != (Addrs{}) {
		t.Errorf("addresses %+v", b.Addrs())
	}
	if err := b.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if s := b.startBlock(); strings.Count(s, " off\n") != 2 {
		t.Errorf("the start block:\n%s", s)
	}
}

// TestReadinessFollowsTheDisk: without room for a write the broker is not ready,
// and it is again when there is room.
func TestReadinessFollowsTheDisk(t *testing.T) {
	fs := vfs.NewMem(0)
	b := start(t, options(fs))
	waitReady(t, b, true)
	fs.SetTotal(1 << 20)
	waitReady(t, b, false)
	if status, body := get(t, b, "/readyz"); status != 503 || !strings.Contains(body, "disk") {
		t.Errorf("not ready is %d %s", status, body)
	}
	fs.SetTotal(1 << 40)
	waitReady(t, b, true)
}

// waitReady waits until the broker is ready, or is not.
func waitReady(t *testing.T, b *Broker, want bool) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = b.Ready(t.Context()); (err == nil) == want {
			return
		}
	}
	t.Fatalf("ready is not %v: %v", want, err)
}

func TestReadinessAsksTheDiskOnceASecond(t *testing.T) {
	o := options(vfs.NewMem(0))
	var skip atomic.Int64
	o.Now = func() time.Time { return time.Now().Add(time.Duration(skip.Load())) }
	b := start(t, o)
	failing := errors.New("injected")
	b.probe.mu.Lock()
	b.probe.last, b.probe.at = failing, o.Now()
	b.probe.mu.Unlock()
	if err := b.Ready(t.Context()); !errors.Is(err, failing) {
		t.Errorf("a fresh outcome is not used: %v", err)
	}
	skip.Store(int64(time.Hour))
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("an old outcome is used: %v", err)
	}
}

func TestAddressFile(t *testing.T) {
	o := options(vfs.NewMem(0))
	o.Config.AddrFile = filepath.Join(t.TempDir(), "addr.json")
	b := start(t, o)
	data, err := os.ReadFile(o.Config.AddrFile)
	if err != nil {
		t.Fatal(err)
	}
	var got Addrs
	if err := json.Unmarshal(data, &got); err != nil || got != b.Addrs() || got.Kafka == "" || got.HTTP == "" {
		t.Errorf("%s: %+v, %v; want %+v", data, got, err, b.Addrs())
	}
	if left, _ := filepath.Glob(o.Config.AddrFile + ".*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAdvertisedAddress(t *testing.T) {
	for advertise, want := range map[string]string{
		"": "", "broker.example.com:19092": "broker.example.com:19092", "[::1]:7": "[::1]:7",
		"broker.example.com": "broker.example.com:", "::1": "[::1]:", "[::1]": "[::1]:",
	} {
		o := options(vfs.NewMem(0))
		o.Config.Advertise = advertise
		l, err := listenTCP(t.Context(), o.Config.KafkaAddr)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if strings.HasSuffix(want, ":") {
			_, port, _ := strings.Cut(l.Addr().String(), ":")
			want += port
		}
		if got := (&Broker{o: o}).advertised(l.Addr()); got != want {
			t.Errorf("--advertise %q: %q, want %q", advertise, got, want)
		}
	}
}

// TestServe runs the whole life: the start block, a signal, a clean stop.
func TestServe(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	var out bytes.Buffer
	o := options(vfs.NewMem(0))
	o.Config.AddrFile = filepath.Join(t.TempDir(), "addr.json")
	ended := make(chan error, 1)
	printed := &notify{w: &out, done: make(chan struct{})}
	go func() { ended <- Serve(ctx, o, printed) }()
	<-printed.done
	signal()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"is ready in", "kafka", "127.0.0.1:", "/metrics", "data", "sync", "always"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the start block lacks %q:\n%s", want, out.String())
		}
	}
}

// notify closes done at the first write.
type notify struct {
	w    io.Writer
	done chan struct{}
}

func (n *notify) Write(p []byte) (int, error) {
	defer close(n.done)
	return n.w.Write(p)
}

// TestServeEndsWhenTheDiskFails: a failed sync is the error that Serve ends with, so
// that the process exits 1; nothing was acknowledged.
func TestServeEndsWhenTheDiskFails(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem(0))
	b, err := Start(t.Context(), options(fs))
	if err != nil {
		t.Fatal(err)
	}
	fs.Inject(vfs.Rule{Op: vfs.OpSync, Err: syscall.EIO})
	if err := b.Ready(t.Context()); err == nil {
		t.Error("ready although no sync succeeds")
	}
	if err := b.run(t.Context(), io.Discard); !errors.Is(err, syscall.EIO) {
		t.Errorf("ended with %v", err)
	}
}

func TestControlGroupLimits(t *testing.T) {
	for s, want := range map[string]int64{"max\n": 0, "268435456\n": 256 << 20, "9223372036854771712\n": 0, "": 0, "-1": 0} {
		got, ok := parseLimit(s)
		if ok != (want > 0) || (ok && got != want) {
			t.Errorf("parseLimit(%q) = %d, %v", s, got, ok)
		}
	}
}

// TestStopDoesNotWaitForLongPolls: members that wait for records and for a
// rebalance are answered, not waited for.
func TestStopDoesNotWaitForLongPolls(t *testing.T) {
	b := start(t, options(vfs.NewMem(0)))
	produce(t, b, "one")
	var members []*kgo.Client
	for range 3 {
		c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs().Kafka), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Minute), kgo.DisableAutoCommit())
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, c)
	}
	t.Cleanup(func() {
		for _, c := range members {
			c.CloseAllowingRebalance()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := make(chan struct{}, len(members))
	for _, c := range members {
		go func() {
			if c.PollFetches(ctx).NumRecords() > 0 {
				got <- struct{}{}
			}
		}()
	}
	<-got // one of them has the record; all long-poll or join
	begin := time.Now()
	stopNow(t, b)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// TestServeEndsAlthoughAPartHangs: a part that never stops does not keep the process.
func TestServeEndsAlthoughAPartHangs(t *testing.T) {
	o := options(vfs.NewMem(0))
	o.Config.ShutdownTimeout = 100 * time.Millisecond
	b, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	b.onStop("hanging part", func(context.Context) error { <-hang; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.run(ctx, io.Discard); err == nil || !strings.Contains(err.Error(), "did not stop") {
		t.Errorf("ended with %v", err)
	}
	close(hang)
	_ = b.Stop(context.Background()) // joins the stop that was left behind; its deadline is over
}
