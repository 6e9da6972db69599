package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The patterns are put together so that this file does not match itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b|panic\("(stub|not implem|unimplem)`)

// textFiles are the endings of files whose words are checked.
var textFiles = []string{".go", ".md", ".yml", ".yaml", ".sh", ".py", ".js", ".java", ".txt", ".service"}

func TestNothingIsLeftUnfinished(t *testing.T) {
	err := walk(func(path string) {
		if !slices.Contains(textFiles, filepath.Ext(path)) && filepath.Base(path) != "Makefile" && filepath.Base(path) != "Dockerfile" {
			return
		}
		text, err := os.ReadFile(filepath.Join(root(), path))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := unfinished.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: finish it, or file it as an issue", path, i+1, word)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sleepers may call time.Sleep in tests: they wait inside a synctest bubble, where
// sleeping is how virtual time passes.
func sleepers(f *goFile) bool { return slices.Contains(f.imports(), "testing/synctest") }

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, f := range sources(t) {
		if !f.test {
			continue
		}
		selectors(f, func(pkg, name string, n ast.Node) {
			if pkg == "time" && name == "Sleep" && !sleepers(f) {
				t.Errorf("%s: time.Sleep in a test; wait for the condition (or use testing/synctest)", f.at(n))
			}
			if pkg == "t" && strings.HasPrefix(name, "Skip") {
				t.Errorf("%s: t.%s: a test that does not run proves nothing", f.at(n), name)
			}
		})
	}
}
