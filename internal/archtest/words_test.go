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

// maySleep says where time.Sleep is right in tests: inside a synctest bubble, where
// sleeping is how virtual time passes, and between two looks at a condition, in a
// helper that is named for it (wait…, eventually…).
func maySleep(f *goFile, fn *ast.FuncDecl) bool {
	name := strings.ToLower(fn.Name.Name)
	return slices.Contains(f.imports(), "testing/synctest") || strings.HasPrefix(name, "wait") || strings.HasPrefix(name, "eventually")
}

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, f := range sources(t) {
		if !f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			selectors(fn, func(pkg, name string, n ast.Node) {
				if pkg == "time" && name == "Sleep" && !maySleep(f, fn) {
					t.Errorf("%s: time.Sleep in a test; wait for the condition (or use testing/synctest)", f.at(n))
				}
				if pkg == "t" && strings.HasPrefix(name, "Skip") {
					t.Errorf("%s: t.%s: a test that does not run proves nothing", f.at(n), name)
				}
			})
		}
	}
}
