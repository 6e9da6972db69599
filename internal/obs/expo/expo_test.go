package expo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/obs"
)

func TestExposition(t *testing.T) {
	var fsync, group obs.Histogram
	fsync.Observe(3 * time.Microsecond)
	group.ObserveN(5)
	h := Handler([]Desc{
		{Name: "daybook_things_total", Kind: Counter, Labels: []string{"kind"}, Help: "Things."},
		{Name: "daybook_level", Kind: Gauge, Help: "Level."},
		{Name: "daybook_fsync_seconds", Kind: Seconds, Help: "Sync."},
		{Name: "daybook_group_entries", Kind: Numbers, Help: "Group."},
	}, func(e Emitter) {
		e.Value("daybook_things_total", 3, "odd")
		e.Value("daybook_level", -1)
		e.Histogram("daybook_fsync_seconds", &fsync)
		e.Histogram("daybook_group_entries", &group)
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		"# TYPE daybook_things_total counter", `daybook_things_total{kind="odd"} 3`, "daybook_level -1",
		`daybook_fsync_seconds_bucket{le="2e-06"} 0`, `daybook_fsync_seconds_bucket{le="4e-06"} 1`, "daybook_fsync_seconds_sum 3e-06",
		`daybook_group_entries_bucket{le="8"} 1`, "daybook_group_entries_sum 5", "go_goroutines",
	} {
		if !strings.Contains(w.Body.String(), want+"\n") && !strings.Contains(w.Body.String(), want+" ") {
			t.Errorf("lacks %q", want)
		}
	}
}

func TestUndeclaredNamesPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Emitter{}.Value("daybook_unknown", 1)
}
