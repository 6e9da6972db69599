// Package mutant shows that a simulator can fail: it builds the simulator's test with a
// guard of the broker taken out, and wants the test to find that. Nothing in the tree is
// changed, the compiler gets an overlay. It knows no simulator; each lists its mutations,
// behind the build tag mutation.
package mutant

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mutation takes one guard out of the broker.
type Mutation struct {
	Name  string
	Edits []Edit
	Want  []string // one of these must be what the test reports
}

// Edit replaces text that occurs once in a file, named from the module's root.
type Edit struct{ File, Old, New string }

// Run builds the tests of the package in the working directory, and wants `rounds`
// rounds of one of them to find the mutation.
func (m Mutation) Run(t *testing.T, test, rounds string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "mutant.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay(t, m.Edits), "-c", "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), bin, "-test.run", "^"+test+"$", "-test.timeout", "5m", "-rounds", rounds).CombinedOutput()
	if err == nil {
		t.Fatalf("%s rounds found nothing", rounds)
	}
	for _, k := range m.Want {
		if strings.Contains(string(out), k+": ") {
			t.Logf("found: %s", k)
			return
		}
	}
	t.Fatalf("it failed for another reason than %q:\n%s", m.Want, out)
}

// overlay writes the edited files and the list of them that the compiler reads.
func overlay(t *testing.T, edits []Edit) string {
	t.Helper()
	root := moduleRoot(t)
	text := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.File)
		if text[path] == "" {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[path] = string(raw)
		}
		if n := strings.Count(text[path], e.Old); n != 1 {
			t.Fatalf("%s has %q %d times", e.File, e.Old, n)
		}
		text[path] = strings.Replace(text[path], e.Old, e.New, 1)
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

// moduleRoot is the folder of go.mod, at or above the working directory.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}
