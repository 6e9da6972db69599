package txn

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/daybook-mq/daybook/internal/model"
)

// classNames are the outcomes as transcripts write them.
var classNames = map[model.Class]string{
	model.ClassProducerMapping: "invalid-producer-id-mapping", model.ClassFenced: "producer-fenced",
	model.ClassConcurrentTxn: "concurrent-transactions", model.ClassTxnState: "invalid-txn-state",
	model.ClassNotInTxn: "transaction-abortable",
}

func show(t *Txn) string {
	s := fmt.Sprintf("%s producer %d epoch %d", t.State, t.ProducerID, t.Epoch)
	if t.LastEpoch != noEpoch {
		s += fmt.Sprintf(" (was %d)", t.LastEpoch)
	}
	if t.PrevProducerID != noID {
		s += fmt.Sprintf(" prev %d", t.PrevProducerID)
	}
	if t.NextProducerID != noID {
		s += fmt.Sprintf(" next %d", t.NextProducerID)
	}
	for _, topic := range t.Parts.Topics() {
		s += fmt.Sprintf(" %s%v", topic, t.Parts[topic])
	}
	if t.StartedMS >= 0 {
		s += fmt.Sprintf(" started %d", t.StartedMS)
	}
	return s
}

// transcript runs commands against one transactional id.
type transcript struct {
	txn Txn
	now int64
}

func (tr *transcript) run(t *testing.T, d *datadriven.TestData) string {
	tr.now++
	next, err := tr.command(t, d)
	switch {
	case errors.Is(err, errNeedProducerID):
		return "needs a producer id\n"
	case err != nil:
		name, ok := classNames[model.ClassOf(err)]
		if !ok {
			t.Fatalf("unexpected error %v", err)
		}
		return name + "\n"
	case next == nil:
		return "ok, nothing to do\n"
	}
	tr.txn = *next
	return show(next) + "\n"
}

func (tr *transcript) command(t *testing.T, d *datadriven.TestData) (*Txn, error) {
	producer := Producer{tr.txn.ProducerID, tr.txn.Epoch}
	version := V1
	if d.HasArg("v2") {
		version = V2
	}
	freshID := noID
	d.MaybeScanArgs(t, "id", &producer.ID)
	d.MaybeScanArgs(t, "epoch", &producer.Epoch)
	d.MaybeScanArgs(t, "fresh", &freshID)
	switch d.Cmd {
	case "new":
		n := fresh("t", producer.ID)
		d.MaybeScanArgs(t, "epoch", &n.Epoch)
		return &n, nil
	case "init":
		in := Init{TimeoutMS: 100, ExpectedID: noID, ExpectedEpoch: noEpoch, FreshID: freshID}
		if d.HasArg("expect") {
			d.ScanArgs(t, "expect", &in.ExpectedID, &in.ExpectedEpoch)
		}
		return tr.txn.init(in, tr.now)
	case "add":
		return tr.txn.add(producer.ID, producer.Epoch, partsArg(t, d), version, tr.now)
	case "verify":
		for topic, ix := range partsArg(t, d) {
			return nil, tr.txn.verify(producer.ID, producer.Epoch, topic, ix[0])
		}
	case "commit", "abort":
		return tr.txn.end(End{producer.ID, producer.Epoch, d.Cmd == "commit", version, freshID}, tr.now)
	case "timeout":
		return tr.txn.fence(tr.now), nil
	case "complete":
		return tr.txn.complete(tr.now), nil
	case "restart":
		_, got, ok, err := readRecord(tr.txn.record())
		if err != nil || !ok {
			t.Fatalf("reading the record back: %v, %v", ok, err)
		}
		return got, nil
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return nil, nil
}

func partsArg(t *testing.T, d *datadriven.TestData) Parts {
	var names string
	d.ScanArgs(t, "parts", &names)
	var parts Parts
	for _, name := range strings.Split(names, "/") {
		var index int32
		topic, number, _ := strings.Cut(name, "-")
		if _, err := fmt.Sscan(number, &index); err != nil {
			t.Fatal(err)
		}
		parts = parts.With(Parts{topic: {index}})
	}
	return parts
}

func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		tr := &transcript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return tr.run(t, d) })
	})
}
