package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/daybooktest"
	"github.com/daybook-mq/daybook/internal/cli"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts with what the commands print now")

// result is what one command line printed and how it ended.
type result struct {
	out, err string
	code     int
}

// daybook runs one command line in this process.
func daybook(t *testing.T, addr, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	g := cli.NewGlobals()
	g.Bootstrap = addr
	g.In, g.Out, g.Err = strings.NewReader(stdin), &out, &errs
	code := run(ctx, g, args)
	return result{out.String(), errs.String(), code}
}

// TestTranscripts runs the files in testdata, each against a fresh broker. A
// line that begins with "$ " is a command, with what follows being all that it
// prints: error lines begin with "! ", and a failure ends with its exit code.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			replay(t, file)
		})
	}
}

func replay(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	addr := daybooktest.Start(t, daybooktest.NoAutoCreate()).Addr()
	var got strings.Builder
	for line := range strings.Lines(string(data)) {
		command, ok := strings.CutPrefix(line, "$ ")
		switch {
		case ok:
			got.WriteString(line + perform(t, addr, strings.TrimSuffix(command, "\n")))
		case strings.HasPrefix(line, "#"):
			got.WriteString(line)
		case line == "\n" && !strings.HasSuffix(got.String(), "\n\n"):
			got.WriteString(line)
		}
	}
	text := strings.TrimRight(got.String(), "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != string(data) {
		t.Errorf("%s differs; `go test ./cmd/daybook -run TestTranscripts -args -rewrite` rewrites it.\n%s", file, firstDifference(string(data), text))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := append(w, make([]string, max(0, i+1-len(w)))...)[i], append(g, make([]string, max(0, i+1-len(g)))...)[i]
		if a != b {
			return fmt.Sprintf("line %d:\n want %q\n  got %q", i+1, a, b)
		}
	}
	return ""
}

// perform runs `[printf TEXT |] daybook ARGS...`.
func perform(t *testing.T, addr, command string) string {
	words := split(t, command)
	stdin := ""
	if words[0] == "printf" && words[2] == "|" {
		stdin = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00").Replace(words[1])
		words = words[3:]
	}
	if words[0] != "daybook" {
		t.Fatalf("a transcript runs daybook only: %s", command)
	}
	r := daybook(t, addr, stdin, words[1:]...)
	var b strings.Builder
	b.WriteString(r.out)
	if r.out != "" && !strings.HasSuffix(r.out, "\n") {
		b.WriteString("\n(no newline)\n")
	}
	for line := range strings.Lines(r.err) {
		b.WriteString("! " + line)
	}
	if r.code != 0 {
		fmt.Fprintf(&b, "[exit %d]\n", r.code)
	}
	return scrub(b.String(), addr)
}

// scrubs hide what differs from run to run.
var scrubs = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\(id [A-Za-z0-9_-]{22}\)`), "(id TOPIC-ID)"},
	{regexp.MustCompile(`"id": "[A-Za-z0-9_-]{22}"`), `"id": "TOPIC-ID"`},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`"timestamp": ?1\d{12}`), `"timestamp":TIME`},
	{regexp.MustCompile(`"lag_seconds": [1-9][0-9.e+]*`), `"lag_seconds": SECONDS`},
	{regexp.MustCompile(`\b\d{5}d\b`), "AGE.."},
	{regexp.MustCompile(`daybook-cli-[0-9A-Za-z]{20,}`), "daybook-cli-MEMBER"},
	{regexp.MustCompile(`"seconds": [0-9.e-]+`), `"seconds": SECONDS`},
	{regexp.MustCompile(`in \d+(\.\d+)?(µs|ms|s) \([^)]*/s\)`), "in DURATION (RATE)"},
}

func scrub(s, addr string) string {
	s = strings.ReplaceAll(s, addr, "BROKER")
	for _, x := range scrubs {
		s = x.re.ReplaceAllString(s, x.with)
	}
	var lines []string
	for line := range strings.Lines(s) {
		if line == "\n" {
			line = "·\n" // a bare empty line would end the output
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// split cuts a line into words as a shell does, with single quotes only.
func split(t *testing.T, line string) []string {
	var words []string
	var word strings.Builder
	quoted, open := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quoted {
		t.Fatalf("open quote in %s", line)
	}
	if open {
		words = append(words, word.String())
	}
	return words
}
