package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/daybooktest"
)

// TestTransactions: one transaction from open to committed, as the commands see
// it: its records are hidden until the commit, it is listed, described, and
// never taken for one that hangs.
func TestTransactions(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	must0(t, daybook(t, addr, "before\n", "produce", "work", "--create"))
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("payments-1"), kgo.DefaultProduceTopic("work"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), kgo.StringRecord("hidden")).FirstErr(); err != nil {
		t.Fatal(err)
	}

	says := func(line string, want ...string) {
		t.Helper()
		r := must0(t, daybook(t, addr, "", strings.Fields(line)...))
		for _, w := range want {
			if !strings.Contains(r.out+r.err, w) {
				t.Errorf("%s: want %q in:\n%s%s", line, w, r.out, r.err)
			}
		}
	}
	prints := func(line, want string) {
		t.Helper()
		if r := must0(t, daybook(t, addr, "", strings.Fields(line)...)); r.out != want {
			t.Errorf("%s: %q, want %q", line, r.out, want)
		}
	}
	says("txn list", "payments-1", "Ongoing")
	says("txn list --state empty", "no such transactional ids")
	says("txn describe payments-1", "payments-1", "Ongoing", "work-0", "Open for:")
	says("txn open", "work", "payments-1", "open")
	says("txn abort-hanging --after 0s --yes", "No transaction hangs")
	prints("consume work", "before\n")
	prints("consume work --isolation uncommitted", "before\nhidden\n")
	prints("consume work --group g", "before\n")
	says("group lag g --check", "OK")

	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	says("txn list", "CompleteCommit")
	says("txn open", "No transaction hangs")
	prints("consume work --group g", "hidden\n")
	// The commit marker is behind the last record: no lag, and no wait for it.
	says("group lag g --check", "OK")
	prints("consume work --group g", "")
	prints("consume work --from 2", "")

	if r := daybook(t, addr, "", "txn", "describe", "nobody"); r.code != 1 || !strings.Contains(r.err, "daybook txn list") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	if got := complete(t, addr, "txn", "describe", ""); len(got) != 1 || got[0] != "payments-1" {
		t.Errorf("%q", got)
	}
}

// TestAbortedRecordsAreNoLag: a long aborted transaction in front of a group is
// passed over, by reading and in the lag.
func TestAbortedRecordsAreNoLag(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	must0(t, daybook(t, addr, "a\n", "produce", "work", "--create"))
	if r := must0(t, daybook(t, addr, "", "consume", "work", "--group", "g")); r.out != "a\n" {
		t.Fatalf("%q", r.out)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("x"), kgo.DefaultProduceTopic("work"),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(20<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for range 30 { // 300 KB in batches of 20: more than one fetch of the look ahead
		if err := cl.ProduceSync(t.Context(), kgo.SliceRecord(make([]byte, 10_000))).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	lag := func(want string) {
		t.Helper()
		if r := must0(t, daybook(t, addr, "", "group", "lag", "g", "-o", "json")); !strings.Contains(r.out, `"lag_messages": `+want+",") {
			t.Errorf("want a lag of %s in:\n%s", want, r.out)
		}
	}
	lag("0")
	if r := must0(t, daybook(t, addr, "", "consume", "work", "--from", "1")); r.out != "" {
		t.Errorf("aborted records are printed: %d bytes", len(r.out))
	}
	must0(t, daybook(t, addr, "b\n", "produce", "work"))
	lag("1")
	if r := must0(t, daybook(t, addr, "", "consume", "work", "--from", "1")); r.out != "b\n" {
		t.Errorf("%d bytes: want b", len(r.out))
	}
	if r := must0(t, daybook(t, addr, "", "consume", "work", "--group", "g")); r.out != "b\n" {
		t.Errorf("the group reads %d bytes: want b", len(r.out))
	}
}
