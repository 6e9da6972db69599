package txn

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/cli"
)

// openTransaction leaves a transaction open in topic t.
func openTransaction(t *testing.T, addr, id string) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), kgo.StringRecord("hidden")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return cl
}

func globals(addr string) (*cli.Globals, *bytes.Buffer) {
	var out bytes.Buffer
	g := cli.NewGlobals()
	g.Bootstrap, g.Output, g.In, g.Out, g.Err = addr, "json", strings.NewReader(""), &out, &bytes.Buffer{}
	return g, &out
}

func hanging(t *testing.T, addr string, o HangingOptions) ([]Open, error) {
	t.Helper()
	g, out := globals(addr)
	err := Hanging(t.Context(), g, o)
	var open []Open
	if err == nil {
		if err := json.Unmarshal(out.Bytes(), &open); err != nil {
			t.Fatal(err)
		}
	}
	return open, err
}

// TestAbortHanging: a transaction that its coordinator knows is never touched;
// one that no coordinator knows is aborted, after asking. The coordinator that
// forgets is a fake broker told to.
func TestAbortHanging(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	addr := c.ListenAddrs()[0]
	openTransaction(t, addr, "id")

	abort := HangingOptions{Abort: true, Yes: true}
	if open, err := hanging(t, addr, abort); err != nil || len(open) != 0 {
		t.Fatalf("a transaction that is known: %+v, %v", open, err)
	}
	if open, err := hanging(t, addr, HangingOptions{All: true}); err != nil || len(open) != 1 || open[0].Hanging || open[0].ID != "id" {
		t.Fatalf("the open ones: %+v, %v", open, err)
	}

	c.ControlKey(int16(kmsg.ListTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return req.ResponseKind(), nil, true
	})
	if open, err := hanging(t, addr, HangingOptions{After: time.Hour}); err != nil || len(open) != 0 {
		t.Fatalf("one that was busy a moment ago: %+v, %v", open, err)
	}
	if open, err := hanging(t, addr, HangingOptions{}); err != nil || len(open) != 1 || !open[0].Hanging || open[0].Aborted {
		t.Fatalf("the forgotten one: %+v, %v", open, err)
	}
	_, err = hanging(t, addr, HangingOptions{Abort: true})
	if _, usage := errors.AsType[*cli.UsageError](err); !usage {
		t.Fatalf("aborting without asking: %v", err)
	}
	if open, err := hanging(t, addr, abort); err != nil || len(open) != 1 || !open[0].Aborted {
		t.Fatalf("aborting: %+v, %v", open, err)
	}
	// Readers of committed records get past it now: the record and the marker.
	g, _ := globals(addr)
	conn, err := g.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stable, err := conn.Admin.ListCommittedOffsets(t.Context(), "t")
	if o, _ := stable.Lookup("t", 0); err != nil || o.Offset != 2 {
		t.Fatalf("after the abort the last stable offset is %d, %v", o.Offset, err)
	}
}
