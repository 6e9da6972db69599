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

// sleeps gives the calls of time.Sleep in f that nothing excuses: a synctest bubble,
// where sleeping is how virtual time passes; a loop, which looks at a condition in
// between; a comment on the line that says why time itself is what is tested.
func sleeps(f *goFile) (bad []ast.Node) {
	if slices.Contains(f.imports(), "testing/synctest") {
		return nil
	}
	excused := map[ast.Node]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if loop, ok := n.(*ast.ForStmt); ok {
			selectors(loop, func(_, _ string, n ast.Node) { excused[n] = true })
		}
		return true
	})
	explained := map[int]bool{}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			explained[f.fset.Position(c.Pos()).Line] = true
		}
	}
	selectors(f.ast, func(pkg, name string, n ast.Node) {
		if pkg == "time" && name == "Sleep" && !excused[n] && !explained[f.fset.Position(n.Pos()).Line] {
			bad = append(bad, n)
		}
	})
	return bad
}

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, f := range sources(t) {
		if !f.test {
			continue
		}
		for _, n := range sleeps(f) {
			t.Errorf("%s: time.Sleep in a test; wait for the condition (or use testing/synctest)", f.at(n))
		}
		selectors(f.ast, func(pkg, name string, n ast.Node) {
			if pkg == "t" && strings.HasPrefix(name, "Skip") {
				t.Errorf("%s: t.%s: a test that does not run proves nothing", f.at(n), name)
			}
		})
	}
}
