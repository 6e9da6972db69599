package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/daybook-mq/daybook/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, addr string, change func(*Options)) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Listener: l,
		Metrics:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "daybook_up 1\n") }),
		Ready:    func(context.Context) error { return nil },
		Inspect: func(_ context.Context, path string) (any, error) {
			switch path {
			case "journal":
				return map[string]int{"lsn": 7}, nil
			case "broken":
				return nil, errors.New("cannot say")
			}
			return nil, model.Err(model.ClassNotFound, "no page "+path)
		},
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	s := Start(o)
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "127.0.0.1:" + port
}

// get answers with status and body; host replaces the Host header if not empty.
func get(t *testing.T, addr, path, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestPages(t *testing.T) {
	local := start(t, "127.0.0.1:0", nil)
	open := start(t, "0.0.0.0:0", nil)
	told := start(t, "0.0.0.0:0", func(o *Options) { o.DebugRemote = true })
	dead := start(t, "127.0.0.1:0", func(o *Options) {
		o.Ready = func(context.Context) error { return errors.New("the disk is full") }
	})
	for _, c := range []struct {
		name, addr, path, host string
		status                 int
		body                   string
	}{
		{"health", local, "/healthz", "", 200, "ok"},
		{"ready", local, "/readyz", "", 200, "ready"},
		{"not ready", dead, "/readyz", "", 503, "the disk is full"},
		{"alive though not ready", dead, "/healthz", "", 200, "ok"},
		{"metrics", local, "/metrics", "", 200, "daybook_up 1"},
		{"state", local, "/debug/journal", "", 200, `"lsn": 7`},
		{"no state", local, "/debug/nothing/at/all", "", 404, "no page nothing/at/all"},
		{"state fails", local, "/debug/broken", "", 500, "cannot say"},
		{"pprof", local, "/debug/pprof/", "", 200, "goroutine"},
		{"localhost by name", local, "/debug/journal", "localhost:8080", 200, "lsn"},
		{"IPv6", local, "/debug/journal", "[::1]:8080", 200, "lsn"},
		{"rebinding", local, "/debug/journal", "evil.example.com", 403, "localhost"},
		{"debug elsewhere", open, "/debug/journal", "", 403, "--debug-remote"},
		{"pprof elsewhere", open, "/debug/pprof/", "", 403, "--debug-remote"},
		{"health elsewhere", open, "/healthz", "", 200, "ok"},
		{"debug elsewhere if told", told, "/debug/journal", "broker.example.com", 200, "lsn"},
		{"nothing", local, "/", "", 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := get(t, c.addr, c.path, c.host)
			if status != c.status || !strings.Contains(body, c.body) {
				t.Errorf("got %d %s; want %d with %q", status, body, c.status, c.body)
			}
		})
	}
}

// TestStopCutsWhatDoesNotEnd: a request that hangs does not hold Stop up for ever.
func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	s := Start(Options{Listener: l, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler), Ready: func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}})
	answered := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String() + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		answered <- err
	}()
	<-begun
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Stop(ctx); err == nil {
		t.Error("no word of the request that was cut")
	}
	if err := <-answered; err == nil {
		t.Error("the request was answered")
	}
	http.DefaultClient.CloseIdleConnections()
}
