package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// The ceilings, in lines. A file or function above its soft ceiling must be listed in
// testdata/allow.txt with a number that only shrinks; the hard ones have no exception.
const (
	fileSoft    = 500
	testSoft    = 600 // of a file of tests: tables grow by rows
	fileHard    = 900
	packageHard = 4000
	funcSoft    = 70
)

// allowances reads testdata/allow.txt: "path lines" or "path:Func lines".
func allowances(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile("testdata/allow.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for i, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		what, number, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			t.Fatalf("testdata/allow.txt:%d: %q is not `path lines`", i+1, line)
		}
		allowed[what] = n
	}
	return allowed
}

// ratchet holds sizes against a ceiling and the allowances, which it uses up.
func ratchet(t *testing.T, allowed map[string]int, what string, lines, ceiling int) {
	t.Helper()
	limit, listed := allowed[what]
	delete(allowed, what)
	switch {
	case lines <= ceiling && listed:
		t.Errorf("%s has %d lines and needs no allowance any more; take it out of internal/archtest/testdata/allow.txt", what, lines)
	case lines > ceiling && !listed:
		t.Errorf("%s has %d lines; the ceiling is %d: split it by noun", what, lines, ceiling)
	case lines > ceiling && lines > limit:
		t.Errorf("%s has %d lines and may have %d; it must shrink, not grow", what, lines, limit)
	}
}

func TestSizes(t *testing.T) {
	allowed := allowances(t)
	packages := map[string]int{}
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		if f.lines > fileHard {
			t.Errorf("%s has %d lines; no file may have more than %d", f.path, f.lines, fileHard)
		}
		if f.test {
			ratchet(t, allowed, f.path, f.lines, testSoft)
			continue
		}
		ratchet(t, allowed, f.path, f.lines, fileSoft)
		packages[f.dir] += f.lines
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
				ratchet(t, allowed, f.path+":"+funcName(fn), lines, funcSoft)
			}
		}
	}
	for dir, lines := range packages {
		if lines > packageHard {
			t.Errorf("package %s has %d lines; no package may have more than %d: split it by noun", dir, lines, packageHard)
		}
	}
	for what := range allowed {
		t.Errorf("internal/archtest/testdata/allow.txt names %s, which does not exist", what)
	}
}

// funcName is Name or Type.Name.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	recv := fn.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if generic, ok := recv.(*ast.IndexExpr); ok {
		recv = generic.X
	}
	return fmt.Sprintf("%s.%s", recv.(*ast.Ident).Name, fn.Name.Name)
}

func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		documented[f.dir] = documented[f.dir] || len(strings.TrimSpace(f.ast.Doc.Text())) > 40
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no file has a package comment that says what %s owns and what it does not do", dir, path.Base(dir))
		}
	}
}
