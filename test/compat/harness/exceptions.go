//go:build unix

package harness

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Exception is one expected deviation of a suite.
type Exception struct {
	Test   string
	Result string // fail, skip, out: not run at all, or flaky: may fail, and passes when run again
	Reason string
	met    bool
}

// Exceptions by test name. A name with spaces is written with underscores.
type Exceptions map[string]*Exception

// ReadExceptions reads lines of test name, result (fail, skip, out or flaky) and reason. A line that starts with
// # is a comment. A line without a reason is an error.
func ReadExceptions(path string) (Exceptions, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := make(Exceptions)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 || !slices.Contains([]string{"fail", "skip", "out", "flaky"}, f[1]) {
			return nil, fmt.Errorf("%s:%d: want: test name, fail|skip|out|flaky, reason", path, n)
		}
		if list[f[0]] != nil {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", path, n, f[0])
		}
		list[f[0]] = &Exception{Test: f[0], Result: f[1], Reason: strings.Join(f[2:], " ")}
	}
	return list, nil
}

func (e Exceptions) find(test string) (Exception, bool) {
	x, ok := e[test]
	if !ok {
		return Exception{}, false
	}
	x.met = true
	return *x, true
}

// leftOut is the pattern of the tests that are not run.
func (e Exceptions) leftOut() string {
	var names []string
	for _, x := range e {
		if x.Result == "out" {
			x.met = true
			names = append(names, "^"+strings.ReplaceAll(x.Test, "/", "$/^")+"$")
		}
	}
	return strings.Join(names, "|")
}

func (e Exceptions) unused() []string {
	var names []string
	for name, x := range e {
		if !x.met {
			names = append(names, name)
		}
	}
	return names
}

// Judge counts the outcome of one named check.
func (e Exceptions) Judge(name string, err error, brokerKind string, r *Report) {
	want, excepted := e.find(strings.ReplaceAll(name, " ", "_"))
	switch {
	case excepted && err != nil:
		r.Excepted++
	case excepted && brokerKind != "kafka":
		r.Fail("%s passes now: take it off the list %q", name, want.Reason)
	default:
		r.Check(name, err)
	}
}

// Unused fails for each exception that met no check: the list must not outlive its reasons.
func (e Exceptions) Unused(r *Report) {
	for _, name := range e.unused() {
		r.Fail("the list of exceptions names %s, which did not run", name)
	}
}
