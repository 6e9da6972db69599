package app

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory gives the Go runtime a soft limit below the container's, so that it
// collects harder instead of being killed. GOMEMLIMIT, if set, stays.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if limit, ok := parseLimit(string(data)); ok {
			debug.SetMemoryLimit(limit / 10 * 9)
		}
		return
	}
}

// parseLimit reads a control group's limit in bytes; "max" and the huge number of
// version 1 mean that there is none.
func parseLimit(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n, err == nil && n > 0 && n < 1<<50
}
