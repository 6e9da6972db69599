//go:build unix

package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// GoSuite is a Go module's own tests, run against a broker.
type GoSuite struct {
	Name       string
	Dir        string   // the scratch copy
	Packages   []string // patterns
	Flags      []string // of go test
	Env        []string
	Exceptions string // file in test/compat/exceptions
	Limit      time.Duration
}

// outcome is what one test did, with the end of what it printed.
type outcome struct {
	result string // pass, fail, skip
	output []string
}

// RunGoSuite runs the tests and holds each against the exceptions: a test must pass unless
// it is listed, and a listed one must do what the list says.
func RunGoSuite(ctx context.Context, env *Env, s GoSuite, brokerKind string, r *Report) error {
	exceptions, err := ReadExceptions(env.Exceptions(s.Exceptions))
	if err != nil {
		return err
	}
	log := filepath.Join(env.Run, "logs", s.Name, "go-test.json")
	args := []string{"go", "test", "-json", "-count=1", "-timeout", s.Limit.String()}
	args = append(args, s.Flags...)
	if left := exceptions.leftOut(); left != "" {
		args = append(args, "-skip", left)
	}
	args = append(args, s.Packages...)
	ctx, cancel := context.WithTimeout(ctx, s.Limit+2*time.Minute)
	defer cancel()
	// A failing test makes go test fail: the outcomes say more than its status.
	runErr := Run(ctx, Command{Dir: s.Dir, Env: s.Env, Args: args, Log: log})
	outcomes, err := readOutcomes(log)
	if err != nil {
		return err
	}
	if len(outcomes) == 0 {
		return fmt.Errorf("no test ran: %w", runErr)
	}
	for _, name := range judge(outcomes, exceptions, brokerKind, r) {
		if err := s.runAgain(ctx, name, filepath.Join(filepath.Dir(log), "again.json")); err != nil {
			r.Fail("%s failed, and again when it ran alone: %v", name, err)
		} else {
			r.Excepted++
		}
	}
	return nil
}

// runsAgain is how often a test that is listed as flaky may fail.
const runsAgain = 2

// runAgain runs one test alone until it passes.
func (s GoSuite) runAgain(ctx context.Context, name, log string) (err error) {
	pattern := "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
	args := append([]string{"go", "test", "-json", "-count=1", "-timeout", s.Limit.String()}, s.Flags...)
	args = append(append(args, "-run", pattern), s.Packages...)
	for range runsAgain {
		if err = Run(ctx, Command{Dir: s.Dir, Env: s.Env, Args: args, Log: log}); err == nil {
			return nil
		}
	}
	return err
}

// ReplaceInSources replaces a word in every Go file under dir.
func ReplaceInSources(dir, from, to string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o644)
	})
}

// readOutcomes reads the events of go test -json. A test without a result was running when
// its binary died, and counts as failed.
func readOutcomes(path string) (map[string]*outcome, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	outcomes := make(map[string]*outcome)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test, Output string }
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) || json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		name := event.Test
		if name == "" {
			// A package that fails on its own: it does not build, or its binary died.
			if event.Action != "fail" {
				continue
			}
			name = "package:" + event.Package
		}
		o := outcomes[name]
		if o == nil {
			o = &outcome{result: "fail"}
			outcomes[name] = o
		}
		switch event.Action {
		case "output":
			if o.output = append(o.output, strings.TrimRight(event.Output, "\n")); len(o.output) > 200 {
				o.output = o.output[100:]
			}
		case "pass", "fail", "skip":
			o.result = event.Action
		}
	}
	return outcomes, lines.Err()
}

// judge counts top-level tests. A failure is laid to the innermost tests that failed. The
// exceptions are Daybook's: another broker may pass what they list. It gives the tests that
// are listed as flaky and failed: they are to be run again.
func judge(outcomes map[string]*outcome, exceptions Exceptions, brokerKind string, r *Report) (again []string) {
	names := make([]string, 0, len(outcomes))
	for name := range outcomes {
		names = append(names, name)
	}
	slices.Sort(names)
	anyTestFailed := slices.ContainsFunc(names, func(n string) bool {
		return !strings.HasPrefix(n, "package:") && outcomes[n].result == "fail"
	})
	failedBelow := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return strings.HasPrefix(n, name+"/") && outcomes[n].result == "fail"
		})
	}
	for _, name := range names {
		o := outcomes[name]
		want, excepted := exceptions.find(name)
		switch {
		case strings.HasPrefix(name, "package:") && anyTestFailed:
			// Said by the test that failed.
		case o.result == "fail" && failedBelow(name):
			// Said by the subtest that failed.
		case want.Result == "flaky" && o.result == "fail":
			again = append(again, name)
		case want.Result == "flaky" && o.result == "pass":
			// As it should.
		case excepted && o.result == want.Result:
			r.Excepted++
		case excepted && o.result == "pass" && brokerKind != "kafka":
			r.Fail("%s passes now: take it off the list %q", name, want.Reason)
		case o.result == "fail":
			r.Fail("%s\n%s", name, relevant(o.output))
		case o.result == "skip":
			r.Fail("%s skips itself and is not listed\n%s", name, relevant(o.output))
		case !strings.Contains(name, "/"):
			r.Pass()
		}
	}
	exceptions.Unused(r)
	return again
}

var chatter = regexp.MustCompile(`\[(INFO|DEBUG|WARN)\]|^=== |^\s*$|waitForTopic: found|retrying after`)

// relevant keeps the lines that say why, without the library's own log.
func relevant(output []string) string {
	var kept []string
	for _, line := range output {
		if !chatter.MatchString(line) {
			kept = append(kept, "    "+line)
		}
	}
	if len(kept) > 12 {
		kept = kept[len(kept)-12:]
	}
	return strings.Join(kept, "\n")
}
