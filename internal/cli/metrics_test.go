package cli

import (
	"strings"
	"testing"
)

func TestParseMetrics(t *testing.T) {
	page := "# HELP a x\n# TYPE a counter\na 3\nb{x=\"1\"} 2\nb{x=\"2 } 9\"} 40\nc NaN\nbad\nworse line\n"
	m, err := ParseMetrics(strings.NewReader(page))
	if err != nil || m["a"] != 3 || m["b"] != 42 || m[`b{x="1"}`] != 2 || m.Has("bad") || m.Has("worse") {
		t.Errorf("%v %v", m, err)
	}
}
