package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/app"
	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/storage/format"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// running starts a broker on disk and gives what to look at.
func running(t *testing.T, change func(*config.Config)) (*cli.Globals, Options) {
	t.Helper()
	c := config.Default()
	c.KafkaAddr, c.HTTPAddr, c.DataDir = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
	if change != nil {
		change(c)
	}
	b, err := app.Start(t.Context(), app.Options{Config: c, FS: vfs.OS{}, Log: slog.New(slog.DiscardHandler), Version: "test", JournalFileSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := b.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	g := cli.NewGlobals()
	g.Bootstrap, g.Timeout = b.Addrs().Kafka, 2*time.Second
	return g, Options{Data: c.DataDir, HTTP: "http://" + b.Addrs().HTTP, Format: app.FormatVersion}
}

// stopped is a directory without a broker.
func stopped(t *testing.T) (*cli.Globals, Options) {
	g := cli.NewGlobals()
	g.Bootstrap, g.Timeout = closedPort(t), 2*time.Second
	return g, Options{Data: t.TempDir(), HTTP: "http://" + closedPort(t), Format: app.FormatVersion}
}

// expect looks for a finding.
func expect(t *testing.T, r Report, check string, s Status, found, remedy string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check != check {
			continue
		}
		if f.Status != s || !strings.Contains(f.Found, found) || !strings.Contains(f.Remedy, remedy) {
			t.Errorf("%s: %s, %q, %q; want %s, %q, %q", check, f.Status, f.Found, f.Remedy, s, found, remedy)
		}
		return
	}
	t.Errorf("no finding of %q in %+v", check, r.Findings)
}

func TestRunningBroker(t *testing.T) {
	g, o := running(t, nil)
	r := Examine(t.Context(), g, o)
	expect(t, r, "data directory", OK, "can be written", "")
	expect(t, r, "lock", OK, "running broker", "")
	expect(t, r, "format", OK, "version 1", "")
	expect(t, r, "broker", OK, "answers at "+g.Bootstrap, "")
	expect(t, r, "readiness", OK, "serving for", "")
	expect(t, r, "sync mode", OK, "always", "")
	expect(t, r, "advertised addresses", OK, g.Bootstrap, "")
	for _, f := range r.Findings {
		if f.Status == Fail || f.Check == "ports" {
			t.Errorf("beside a healthy broker: %+v", f)
		}
	}
}

func TestWeakSyncMode(t *testing.T) {
	g, o := running(t, func(c *config.Config) { c.Sync.Mode = config.SyncNone })
	expect(t, Examine(t.Context(), g, o), "sync mode", Warn, "loses acknowledged records", "--sync=always")
}

func TestUnreachableAdvertisedAddress(t *testing.T) {
	addr := closedPort(t)
	g, o := running(t, func(c *config.Config) { c.Advertise = addr })
	expect(t, Examine(t.Context(), g, o), "advertised addresses", Fail, addr, "--advertise")
}

func TestBrokerElsewhere(t *testing.T) {
	g, o := running(t, nil)
	g.Bootstrap = closedPort(t)
	expect(t, Examine(t.Context(), g, o), "broker", Fail, "none answers at "+g.Bootstrap, "--bootstrap")
}

func TestBeforeTheFirstStart(t *testing.T) {
	g, o := stopped(t)
	o.Data = filepath.Join(o.Data, "not", "yet")
	r := Examine(t.Context(), g, o)
	expect(t, r, "data directory", OK, "the first start makes it", "")
	expect(t, r, "broker", Warn, "none answers", "daybook serve")
	expect(t, r, "ports", OK, g.Bootstrap, "")
	if r.Status == Fail {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(o.Data); !errors.Is(err, os.ErrNotExist) {
		t.Error("the doctor has made the directory")
	}
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) // a web server, say
			_ = c.Close()
		}
	}()
	g, o := stopped(t)
	g.Bootstrap, g.Timeout = l.Addr().String(), time.Second
	r := Examine(t.Context(), g, o)
	expect(t, r, "broker", Fail, "is a web server", "ss -ltnp")
	expect(t, r, "ports", Fail, "taken by another program: "+g.Bootstrap, "ss -ltnp")
}

// TestDirectories: each kind of directory that a broker cannot or should not
// use is told by name.
func TestDirectories(t *testing.T) {
	whole := format.FileHeader{Kind: format.KindJournal, ID: 7, FirstLSN: 1}
	newer := whole
	newer.Version = format.Version + 1
	flipped := whole.Encode()
	flipped[20] ^= 1
	write := func(name string, data []byte) func(string) {
		return func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				panic(err)
			}
		}
	}
	cases := []struct {
		name    string
		prepare func(dir string)
		check   string
		status  Status
		found   string
		remedy  string
	}{
		{"whole", write("0000000000000007.data", whole.Encode()), "format", OK, "1 data files", ""},
		{"prepared", write("0000000000000007.data", make([]byte, format.HeaderSize)), "format", OK, "", ""},
		{"newer file", write("0000000000000007.data", newer.Encode()), "format", Fail, "0000000000000007.data", "newer Daybook"},
		{"flipped", write("0000000000000007.data", flipped), "format", Fail, "0000000000000007.data", "daybook log verify"},
		{"short", write("0000000000000007.data", flipped[:100]), "format", Fail, "no whole header", "daybook log verify"},
		{"set aside", write("0000000000000007.damaged", nil), "format", Warn, "1 damaged", "daybook log verify"},
		{"newer directory", write("meta.json", []byte(`{"format": 99}`)), "format", Fail, "format 99", "newer Daybook"},
		{"older directory", write("meta.json", []byte(`{"format": 0}`)), "format", Fail, "format 0", "older Daybook"},
		{"bad meta", write("meta.json", []byte(`{"form`)), "format", Fail, "meta.json", "backup"},
		{"free", write("LOCK", nil), "lock", OK, "free", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, o := stopped(t)
			c.prepare(o.Data)
			expect(t, Examine(t.Context(), g, o), c.check, c.status, c.found, c.remedy)
		})
	}
	g, o := stopped(t)
	o.Data = filepath.Join(o.Data, "file")
	if err := os.WriteFile(o.Data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, Examine(t.Context(), g, o), "data directory", Fail, "is a file", "--data DIR")
}

// TestJudgements: what is found on other machines than this one.
func TestJudgements(t *testing.T) {
	many := func(d time.Duration) []time.Duration { return []time.Duration{d, d, d} }
	cases := []struct {
		judge  func(*exam)
		status Status
		found  string
	}{
		{func(e *exam) { e.judgeFileSystem("xfs") }, OK, "xfs"},
		{func(e *exam) { e.judgeFileSystem("tmpfs") }, Fail, "gone when the machine restarts"},
		{func(e *exam) { e.judgeFileSystem("nfs") }, Warn, "other side"},
		{func(e *exam) { e.judgeFileSystem("overlayfs") }, Warn, "container"},
		{func(e *exam) { e.judgeFileSystem("zfs") }, Warn, "copying on write"},
		{func(e *exam) { e.judgeFileSystem("type 0x1") }, OK, "0x1"},
		{func(e *exam) { e.judgeSyncs(many(time.Millisecond)) }, OK, "p50 1ms"},
		{func(e *exam) { e.judgeSyncs(many(20 * time.Millisecond)) }, Warn, "slow"},
		{func(e *exam) { e.judgeSyncs(many(time.Second)) }, Fail, "waits for so long"},
		{func(e *exam) { e.judgeSyncs(many(time.Microsecond)) }, Warn, "faster than disks"},
		{func(e *exam) { e.judgeRoom(vfs.Space{Free: 500 << 30, Total: 1 << 40}) }, OK, "500.0 GiB free"},
		{func(e *exam) { e.judgeRoom(vfs.Space{Free: 3 << 30, Total: 1 << 40}) }, Warn, "slowed"},
		{func(e *exam) { e.judgeRoom(vfs.Space{Free: 100 << 20, Total: 1 << 40}) }, Fail, "refused"},
		{func(e *exam) { e.clock = time.Now().Add(-time.Minute); e.time(t.Context()) }, Warn, "apart from the broker's clock"},
	}
	for _, c := range cases {
		e := &exam{o: Options{Data: "data"}}
		c.judge(e)
		f := e.findings[0]
		if f.Status != c.status || !strings.Contains(f.Found, c.found) {
			t.Errorf("%s %q, want %s %q", f.Status, f.Found, c.status, c.found)
		}
		if f.Status != OK && f.Remedy == "" {
			t.Errorf("%q has no remedy", f.Found)
		}
	}
}

func TestFileSystemOfThisMachine(t *testing.T) {
	kind, err := fileSystemOf(t.TempDir())
	if runtime.GOOS == "linux" && (err != nil || kind == "") {
		t.Errorf("%q, %v", kind, err)
	}
}

func TestRunFailsWithAFailure(t *testing.T) {
	g, o := stopped(t)
	var out bytes.Buffer
	g.Out, g.Output = &out, "json"
	if err := os.WriteFile(filepath.Join(o.Data, "meta.json"), []byte("{}x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), g, o); !errors.Is(err, cli.ErrSilent) {
		t.Errorf("%v", err)
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Status != Fail {
		t.Errorf("%v %+v", err, r)
	}
}
