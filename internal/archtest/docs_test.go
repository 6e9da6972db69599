package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	// A folder or file of the tree, such as internal/core/partition or .ci/run.
	treePath = regexp.MustCompile(`^(cmd|internal|docs|test|daybooktest|examples|packaging|changes|web|inbox|outbox|retry|\.ci)/[A-Za-z0-9_./-]+$`)
	// A symbol of ours, such as partition.Submit or topics.Catalogue.ByName.
	symbol = regexp.MustCompile(`^([a-z][a-z0-9]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?(?:\(\))?$`)
	// A test by name, such as TestSizes.
	testName  = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*$`)
	makeUse   = regexp.MustCompile(`(?:^|\s)make ([a-z][a-z-]*)`)
	makeRules = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// declared maps package name to the exported symbols of all packages of that
// name ("Type", "Type.Method", "Func"), and "" to the names of tests.
func declared(files []*goFile) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	add := func(pkg, name string) {
		if names[pkg] == nil {
			names[pkg] = map[string]bool{}
		}
		names[pkg][name] = true
	}
	for _, f := range files {
		pkg := f.ast.Name.Name
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if f.test {
					add("", d.Name.Name)
				} else {
					add(pkg, funcName(d))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(pkg, s.Name.Name)
						addMembers(s, func(member string) { add(pkg, s.Name.Name+"."+member) })
					case *ast.ValueSpec:
						for _, n := range s.Names {
							add(pkg, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// addMembers adds the fields of a struct and the methods of an interface.
func addMembers(s *ast.TypeSpec, add func(string)) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			add(n.Name)
		}
	}
}

func TestWhatTheDocsNameExists(t *testing.T) {
	names := declared(sources(t))
	makefile, err := os.ReadFile(filepath.Join(root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeRules.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	err = walk(func(path string) {
		if !strings.HasSuffix(path, ".md") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root(), path))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				if fault := missing(m[1], names, targets); fault != "" {
					t.Errorf("%s:%d: `%s`: %s", path, i+1, m[1], fault)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// missing says what is wrong with a span of code in the docs, or "".
func missing(span string, names map[string]map[string]bool, targets map[string]bool) string {
	if m := makeUse.FindStringSubmatch(span); m != nil && !targets[m[1]] {
		return "the Makefile has no such target"
	}
	if treePath.MatchString(span) && !strings.Contains(span, "NNN") {
		if _, err := os.Stat(filepath.Join(root(), span)); err != nil {
			return "no such file or folder"
		}
		return ""
	}
	if testName.MatchString(span) && !names[""][span] {
		return "no such test"
	}
	m := symbol.FindStringSubmatch(span)
	if m == nil || names[m[1]] == nil { // no symbol, or of a package that is not ours
		return ""
	}
	name := m[2]
	if m[3] != "" {
		name += "." + m[3]
	}
	if !names[m[1]][name] {
		return "package " + m[1] + " has no such symbol"
	}
	return ""
}
