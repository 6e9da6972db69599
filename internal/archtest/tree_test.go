package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/daybook-mq/daybook"

// goFile is one parsed Go file of the module.
type goFile struct {
	path  string // from the module's root, with slashes
	dir   string
	test  bool
	lines int
	text  string
	ast   *ast.File
	fset  *token.FileSet
}

// imports gives the paths that the file imports.
func (f *goFile) imports() []string {
	paths := make([]string, len(f.ast.Imports))
	for i, s := range f.ast.Imports {
		paths[i], _ = strconv.Unquote(s.Path.Value)
	}
	return paths
}

func (f *goFile) generated() bool { return ast.IsGenerated(f.ast) }

// line is the position of n for a message.
func (f *goFile) at(n ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

var root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
})

// walk calls f for each file of the module, leaving out what is not ours.
func walk(f func(path string)) error {
	return filepath.WalkDir(root(), func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			hidden := strings.HasPrefix(name, ".") && name != ".ci" && full != root()
			if hidden || name == "testdata" || name == "bin" || name == "vendor" || name == "node_modules" || name == "daybook-data" {
				return filepath.SkipDir
			}
			// A module inside this one has rules of its own.
			if _, err := os.Stat(filepath.Join(full, "go.mod")); err == nil && full != root() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root(), full)
		if err == nil {
			f(filepath.ToSlash(rel))
		}
		return err
	})
}

var load = sync.OnceValues(func() ([]*goFile, error) {
	var files []*goFile
	var fault error
	err := walk(func(path string) {
		if !strings.HasSuffix(path, ".go") || fault != nil {
			return
		}
		text, err := os.ReadFile(filepath.Join(root(), path))
		if err != nil {
			fault = err
			return
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			fault = err
			return
		}
		files = append(files, &goFile{
			path: path, dir: filepath.ToSlash(filepath.Dir(path)),
			test: strings.HasSuffix(path, "_test.go"), lines: strings.Count(string(text), "\n"),
			text: string(text), ast: parsed, fset: fset,
		})
	})
	if fault != nil {
		err = fault
	}
	return files, err
})

func sources(t *testing.T) []*goFile {
	t.Helper()
	files, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file found")
	}
	return files
}

// under reports whether dir is prefix or lies in it.
func under(dir, prefix string) bool {
	return dir == prefix || strings.HasPrefix(dir, prefix+"/")
}
