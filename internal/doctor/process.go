package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// descriptors is about how many files and connections a process here may have
// open. A connection takes one, data files a few dozen.
func (e *exam) descriptors(context.Context) {
	const check, few, enough = "file descriptors", 1024, 10_000
	limit, err := descriptorLimit()
	if err != nil {
		return // this system has no such limit
	}
	remedy := "`ulimit -n 65536` in the shell that starts the broker, or LimitNOFILE=65536 in its systemd unit"
	found := fmt.Sprintf("%s, for connections and data files", cli.Count(int64(min(limit, 1<<62))))
	switch {
	case limit < few:
		e.add(check, Fail, remedy, "%s", found)
	case limit < enough:
		e.add(check, Warn, remedy, "%s", found)
	default:
		e.add(check, OK, "", "%s", found)
	}
}

// maxSkew is how far our clock may be from the broker's. Its answer tells whole
// seconds.
const maxSkew = 3 * time.Second

// time is about record timestamps, retention and lag, which all need the clock
// to be right.
func (e *exam) time(context.Context) {
	const check = "clock"
	remedy := "`timedatectl set-ntp true` keeps the clock right"
	now := time.Now()
	if now.Year() < 2025 {
		e.add(check, Fail, remedy, "the clock says %s", now.Format(time.DateOnly))
		return
	}
	if !e.clock.IsZero() {
		if skew := now.Sub(e.clock).Abs(); skew > maxSkew {
			e.add(check, Warn, remedy+", here and at the broker", "%s apart from the broker's clock", cli.Brief(skew))
			return
		}
	}
	synced, known := clockSynchronised()
	switch {
	case !known:
		e.add(check, OK, "", "%s; this system does not tell whether it is kept right", now.UTC().Format(time.RFC3339))
	case !synced:
		e.add(check, Warn, remedy, "nothing keeps it right (no time synchronisation)")
	default:
		e.add(check, OK, "", "synchronised")
	}
}
