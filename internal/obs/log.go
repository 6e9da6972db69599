// Package obs holds what every layer may use to be seen from outside: counters and
// histograms that cost a few nanoseconds, and the set-up of slog. It does not know
// who reads them; package expo turns them into Prometheus's form.
package obs

import (
	"io"
	"log/slog"
)

// NewLogger makes the process's logger. Format is "text" or "json".
func NewLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
