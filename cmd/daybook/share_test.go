package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/daybooktest"
)

// TestShareGroup: two members share one partition's records, each record is
// printed once; the group is listed, described, reset and deleted.
func TestShareGroup(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	must0(t, daybook(t, addr, "", "topic", "create", "jobs"))
	must0(t, daybook(t, addr, "", "group", "alter", "workers", "--set", "share.auto.offset.reset=earliest"))
	if r := must0(t, daybook(t, addr, "", "group", "configs", "workers", "auto.offset")); !strings.Contains(r.out, "earliest") {
		t.Errorf("the group's settings:\n%s", r.out)
	}
	a := start(t, addr, nil, "consume", "jobs", "--share", "workers", "-f")
	b := start(t, addr, nil, "consume", "jobs", "--share", "workers", "-f")
	eventually(t, "both are members", func() bool {
		return strings.Contains(daybook(t, addr, "", "group", "describe", "workers").out, "Members:   2")
	})
	must0(t, daybook(t, addr, lines(50, "%04d"), "produce", "jobs", "--rate", "500"))
	eventually(t, "all are printed", func() bool {
		return strings.Count(a.out.String()+b.out.String(), "\n") >= 50
	})
	if r := must0(t, daybook(t, addr, "", "group", "list", "--type", "share")); !strings.Contains(r.out, "workers") {
		t.Errorf("list:\n%s", r.out)
	}
	if r := daybook(t, addr, "", "group", "reset", "workers", "--topic", "jobs", "--to-start", "--execute"); r.code != 1 || !strings.Contains(r.err, "in use") {
		t.Errorf("reset of a live share group: exit code %d\n%s", r.code, r.err)
	}
	a.interrupt()
	b.interrupt()
	if c := a.wait(t); c != 130 {
		t.Errorf("exit code %d: %s", c, a.err.String())
	}
	b.wait(t)
	got := strings.Fields(a.out.String() + b.out.String())
	slices.Sort(got)
	if !slices.Equal(got, strings.Fields(lines(50, "%04d"))) {
		t.Errorf("printed: %q", got)
	}
	must0(t, daybook(t, addr, "", "group", "reset", "workers", "--topic", "jobs", "--to-offset", "40", "--execute"))
	if r := must0(t, daybook(t, addr, "", "consume", "jobs", "--share", "workers", "-n", "4")); r.out != "0040\n0041\n0042\n0043\n" {
		t.Errorf("after the reset: %q", r.out)
	}
	if r := must0(t, daybook(t, addr, "", "consume", "jobs", "--share", "workers")); r.out != "0044\n0045\n0046\n0047\n0048\n0049\n" {
		t.Errorf("what was released: %q", r.out)
	}
	must0(t, daybook(t, addr, "", "group", "delete-offsets", "workers", "--topic", "jobs", "--yes"))
	must0(t, daybook(t, addr, "", "group", "delete", "workers", "--yes"))
}
