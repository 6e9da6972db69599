//go:build unix

package harness

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is what one suite showed.
type Report struct {
	Suite    string
	Passed   int
	Failed   int
	Excepted int // expected exceptions, each with a reason in a file of the tree
	Notes    []string
	Took     time.Duration
}

// Pass counts one passed check.
func (r *Report) Pass() { r.Passed++ }

// Fail counts one failed check and keeps its message.
func (r *Report) Fail(format string, args ...any) {
	r.Failed++
	r.Notes = append(r.Notes, "FAIL "+fmt.Sprintf(format, args...))
}

// Note keeps a line for the end of the run: a figure, not a verdict.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Check counts err as a pass when it is nil, else as a failure of name.
func (r *Report) Check(name string, err error) {
	if err != nil {
		r.Fail("%s: %v", name, err)
		return
	}
	r.Pass()
}

// PrintTable writes the notes, the table, and the closing line that CI reads. It reports
// whether everything passed.
func PrintTable(w io.Writer, reports []*Report) bool {
	var passed, failed int
	for _, r := range reports {
		for _, n := range r.Notes {
			fmt.Fprintf(w, "%s: %s\n", r.Suite, n)
		}
	}
	fmt.Fprintf(w, "\n%-14s %7s %7s %9s %8s\n%s\n", "suite", "passed", "failed", "excepted", "seconds",
		strings.Repeat("-", 49))
	for _, r := range reports {
		fmt.Fprintf(w, "%-14s %7d %7d %9d %8.1f\n", r.Suite, r.Passed, r.Failed, r.Excepted, r.Took.Seconds())
		passed += r.Passed
		failed += r.Failed
	}
	fmt.Fprintf(w, "\n%d passed, %d failed\n", passed, failed)
	return failed == 0 && passed > 0
}
