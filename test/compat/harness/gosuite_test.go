//go:build unix

package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func exceptionsOf(t *testing.T, text string) (Exceptions, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadExceptions(path)
}

const events = `$ go test
{"Action":"run","Test":"TestGood"}
{"Action":"pass","Test":"TestGood"}
{"Action":"run","Test":"TestBad"}
{"Action":"output","Test":"TestBad/sub","Output":"why it failed\n"}
{"Action":"fail","Test":"TestBad/sub"}
{"Action":"fail","Test":"TestBad"}
{"Action":"skip","Test":"TestSkips"}
{"Action":"run","Test":"TestCutOff"}
{"Action":"fail","Package":"p"}
`

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		list                     string
		passed, failed, excepted int
		says                     string
		again                    string
	}{
		"nothing listed":    {"", 1, 3, 0, "TestBad/sub\n    why it failed", ""},
		"all listed":        {"TestBad/sub fail for reasons\nTestSkips skip for reasons\nTestCutOff fail it dies", 1, 0, 3, "", ""},
		"passes now":        {"TestGood fail for reasons", 0, 4, 0, "TestGood passes now", ""},
		"skips, not fails":  {"TestSkips fail for reasons", 1, 3, 0, "TestSkips skips itself", ""},
		"fails, not skips":  {"TestBad/sub skip for reasons", 1, 3, 0, "TestBad/sub", ""},
		"listed and gone":   {"TestGone fail for reasons", 1, 4, 0, "names TestGone", ""},
		"flaky":             {"TestBad/sub flaky for reasons\nTestGood flaky for reasons", 0, 2, 0, "TestCutOff", "TestBad/sub"},
		"cut off by a dead": {"", 1, 3, 0, "TestCutOff", ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(log, []byte(events), 0o644); err != nil {
				t.Fatal(err)
			}
			outcomes, err := readOutcomes(log)
			if err != nil {
				t.Fatal(err)
			}
			list, err := exceptionsOf(t, tc.list)
			if err != nil {
				t.Fatal(err)
			}
			r := new(Report)
			again := judge(outcomes, list, "daybook", r)
			if strings.Join(again, " ") != tc.again {
				t.Errorf("to run again: %q, want %q", again, tc.again)
			}
			if r.Passed != tc.passed || r.Failed != tc.failed || r.Excepted != tc.excepted {
				t.Errorf("%d passed, %d failed, %d excepted: %v", r.Passed, r.Failed, r.Excepted, r.Notes)
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, tc.says) {
				t.Errorf("notes lack %q:\n%s", tc.says, notes)
			}
		})
	}
}

func TestExceptionsNeedAReason(t *testing.T) {
	for _, text := range []string{"TestX fail", "TestX fail why", "TestX perhaps for some reason", "TestX fail a reason\nTestX skip a reason"} {
		if _, err := exceptionsOf(t, text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
