package journal

import (
	"fmt"
	"strings"
	"time"
)

// SyncMode says when groups are done: SyncAlways after a sync; SyncNone and
// intervals (positive durations) after the write, with a sync at most that much
// later or when the operating system likes. A process that is killed loses
// nothing in any mode; a machine that crashes loses what was not synced.
type SyncMode time.Duration

// The sync modes that are not an interval.
const (
	SyncAlways SyncMode = 0
	SyncNone   SyncMode = -1
)

// ParseSyncMode reads always, none or interval=DURATION.
func ParseSyncMode(s string) (SyncMode, error) {
	switch s {
	case "always":
		return SyncAlways, nil
	case "none":
		return SyncNone, nil
	}
	if v, ok := strings.CutPrefix(s, "interval="); ok {
		d, err := time.ParseDuration(v)
		if err == nil && d > 0 {
			return SyncMode(d), nil
		}
	}
	return SyncAlways, fmt.Errorf("sync mode %q is not always, none or interval=DURATION (such as interval=100ms)", s)
}

// String gives the form that ParseSyncMode reads.
func (m SyncMode) String() string {
	switch {
	case m == SyncAlways:
		return "always"
	case m < 0:
		return "none"
	}
	return "interval=" + time.Duration(m).String()
}

// interval is the time between syncs; 0 for the other modes.
func (m SyncMode) interval() time.Duration { return max(0, time.Duration(m)) }
