package conn

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logEvery is the least time between two lines of a limitedLog.
const logEvery = time.Second

// limitedLog writes at most one line a second, and says with the next one how
// many it left out: what clients do wrong must not fill the disk.
type limitedLog struct {
	log *slog.Logger

	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (l *limitedLog) warn(msg string, attrs ...slog.Attr) {
	l.mu.Lock()
	now := time.Now()
	if now.Sub(l.last) < logEvery {
		l.skipped++
		l.mu.Unlock()
		return
	}
	skipped := l.skipped
	l.last, l.skipped = now, 0
	l.mu.Unlock()
	if skipped > 0 {
		attrs = append(attrs, slog.Int("left_out", skipped))
	}
	l.log.LogAttrs(context.Background(), slog.LevelWarn, msg, attrs...) //nolint:sloglint // the callers' messages are constant
}
