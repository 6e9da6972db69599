//go:build linux

package size

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "daybook-size")
	if err == nil {
		binary = filepath.Join(dir, "daybook")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "github.com/daybook-mq/daybook/cmd/daybook")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// broker is a running process.
type broker struct {
	cmd   *exec.Cmd
	kafka string
	ready time.Duration // from exec to the address file, which is written last
}

func start(t *testing.T, dir string) *broker {
	t.Helper()
	addrs := filepath.Join(t.TempDir(), "addr.json")
	b := &broker{cmd: exec.Command(binary, "serve", "--data", dir, "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--addr-file", addrs)}
	b.cmd.Env = append(os.Environ(), "GOGC=", "GOMEMLIMIT=")
	begin := time.Now()
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	for b.kafka == "" {
		if time.Since(begin) > time.Minute {
			t.Fatal("the broker did not start")
		}
		time.Sleep(time.Millisecond)
		if data, err := os.ReadFile(addrs); err == nil {
			var a struct{ Kafka string }
			if err := json.Unmarshal(data, &a); err != nil {
				t.Fatal(err)
			}
			b.kafka, b.ready = a.Kafka, time.Since(begin)
		}
	}
	return b
}

func (b *broker) end(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil && s != syscall.SIGKILL {
		t.Errorf("the broker ended: %v", err)
	}
}

// resident is the process's resident memory in bytes.
func (b *broker) resident(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if kb, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(kb, "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// handles counts open file descriptors.
func (b *broker) handles(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// fill makes topics and writes one record to each of their partitions.
func (b *broker) fill(t *testing.T, topics, partitions int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(topics*partitions))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprintf("topic-%d", i)
	}
	created, err := kadm.NewClient(client).CreateTopics(t.Context(), int32(partitions), 1, nil, names...)
	if err != nil || created.Error() != nil {
		t.Fatal(err, created.Error())
	}
	var records []*kgo.Record
	for _, name := range names {
		for p := range partitions {
			records = append(records, &kgo.Record{Topic: name, Partition: int32(p), Value: []byte("a record of some length, to be kept")})
		}
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// below fails the test when a measured value is not under its ceiling.
func below[T int | int64 | time.Duration](t *testing.T, what string, got, ceiling T) {
	t.Helper()
	t.Logf("%-45s %v, ceiling %v", what, got, ceiling)
	if got >= ceiling {
		t.Errorf("%s: %v; must be below %v", what, got, ceiling)
	}
}

// bestStart starts and stops a few times: other work on the machine makes some slow.
func bestStart(t *testing.T, dir string, end syscall.Signal) time.Duration {
	t.Helper()
	best := time.Hour
	for range 3 {
		b := start(t, dir)
		best = min(best, b.ready)
		b.end(t, end)
	}
	return best
}

func TestIdle(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	b.fill(t, 10, 1)
	below(t, "resident bytes, 10 topics", b.resident(t), 40<<20)
	b.end(t, syscall.SIGTERM)
	below(t, "start of an empty directory", bestStart(t, t.TempDir(), syscall.SIGTERM), 200*time.Millisecond)
	below(t, "start again, 10 topics", bestStart(t, dir, syscall.SIGTERM), 200*time.Millisecond)
}

func TestTenThousandPartitions(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	b.fill(t, 10, 1000)
	below(t, "resident bytes, 10,000 partitions, after writes", b.resident(t), 200<<20)
	below(t, "open files, 10,000 partitions", b.handles(t), 64)
	b.end(t, syscall.SIGTERM)
	below(t, "start, 10,000 partitions", bestStart(t, dir, syscall.SIGTERM), 2*time.Second)
	below(t, "start after kill -9, 10,000 partitions", bestStart(t, dir, syscall.SIGKILL), 5*time.Second)
	b = start(t, dir)
	below(t, "resident bytes, 10,000 partitions, idle", b.resident(t), 200<<20)
	below(t, "open files, 10,000 partitions, idle", b.handles(t), 64)
	b.end(t, syscall.SIGTERM)
}
