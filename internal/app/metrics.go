package app

import (
	"runtime"
	"time"

	"github.com/daybook-mq/daybook/internal/obs/expo"
)

// metrics declares everything that /metrics shows of Daybook's own; collect fills it.
var metrics = []expo.Desc{
	{Name: "daybook_build_info", Kind: expo.Gauge, Labels: []string{"version", "go"}, Help: "1, with the version in a label."},
	{Name: "daybook_uptime_seconds", Kind: expo.Gauge, Help: "Time since the start."},
}

func (b *Broker) collect(e expo.Emitter) {
	e.Value("daybook_build_info", 1, b.o.Version, runtime.Version())
	e.Value("daybook_uptime_seconds", time.Since(b.started).Seconds())
}
