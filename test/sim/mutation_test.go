//go:build mutation

package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/test/sim/history"
)

// mutation takes one guard out of the broker.
type mutation struct {
	name  string
	edits []edit
	want  []history.Kind // one of these must be found
}

// edit replaces text that occurs once in a file.
type edit struct{ file, old, new string }

const (
	producersFile = "internal/core/partition/producers.go"
	machineFile   = "internal/core/txn/machine.go"
	finishFile    = "internal/core/txn/finish.go"
	txnsFile      = "internal/core/partition/txns.go"
	commitFile    = "internal/storage/journal/commit.go"
)

var mutations = []mutation{
	{"sequence check off", []edit{
		{producersFile, "w.firstSeq == first && w.lastSeq == last {", "w.firstSeq == first && w.lastSeq == last && false {"},
		{producersFile, "case !followsSequence(p.lastSeq(), first):", "case false:"},
	}, []history.Kind{history.Duplicate, history.ProducerOrder}},
	{"last stable offset off", []edit{
		{txnsFile, "		lso = min(lso, t.open[0].first)", "		lso = min(lso, hwm)"},
	}, []history.Kind{history.AbortedRead, history.DirtyRead}},
	{"epoch check off", []edit{
		{producersFile, "if p != nil && b.ProducerEpoch() < p.epoch {", "if false {"},
		{machineFile, "	case t.Epoch != epoch:\n", "	case false:\n"},
		{machineFile, "	if t.Epoch != c.Epoch {\n", "	if false {\n"},
		{machineFile, "if t.Epoch != c.Epoch || t.State.Preparing() {", "if false {"},
	}, []history.Kind{history.LostWrite, history.TornTxn, history.ProcessedTwo, history.LostOffset}},
	{"marker written before offsets", []edit{
		{finishFile, "	markers := c.resolve(prep, prep.Parts)\n", `	markers := c.resolve(prep, prep.Parts)
	var early []marker
	for _, m := range markers {
		if m.ended.Topic != "__consumer_offsets" {
			early = append(early, m)
		}
	}
	if t, _, err := c.submitLocked(s, c.markerItems(s, early), early); err == nil && t != nil {
		<-t.done
	}
`},
	}, []history.Kind{history.ProcessedTwo, history.NotProcessed, history.TornTxn, history.Resurrected}},
	{"fsync off", []edit{
		{commitFile, "	if err := c.cur.f.SyncData(); err != nil {\n", "	if err := error(nil); err != nil {\n"},
	}, []history.Kind{history.LostWrite, history.LostOffset, history.TwoValues}},
}

// TestMutations builds the simulator with each guard taken out, and wants it to
// find that. Nothing in the tree is changed: the compiler gets an overlay.
func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			bin := filepath.Join(t.TempDir(), "sim.test")
			build := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay(t, m.edits), "-c", "-o", bin, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), bin, "-test.run", "^TestHistories$", "-test.timeout", "5m", "-rounds", "100").CombinedOutput()
			if err == nil {
				t.Fatal("100 rounds found nothing")
			}
			for _, k := range m.want {
				if strings.Contains(string(out), string(k)+": ") {
					t.Logf("found: %s", k)
					return
				}
			}
			t.Fatalf("it failed for another reason than %q:\n%s", m.want, out)
		})
	}
}

// overlay writes the edited files and the list of them that the compiler reads.
func overlay(t *testing.T, edits []edit) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.file)
		if text[path] == "" {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[path] = string(raw)
		}
		if n := strings.Count(text[path], e.old); n != 1 {
			t.Fatalf("%s has %q %d times", e.file, e.old, n)
		}
		text[path] = strings.Replace(text[path], e.old, e.new, 1)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for path, s := range text {
		to := filepath.Join(dir, strings.ReplaceAll(filepath.Base(path), ".go", "_mutant.go"))
		if err := os.WriteFile(to, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(to, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
