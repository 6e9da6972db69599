package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/daybooktest"
	"github.com/daybook-mq/daybook/internal/cli"
)

func testGlobals() *cli.Globals { return cli.NewGlobals() }

// all lists c and the commands below it.
func all(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, child := range c.Commands() {
		list = append(list, all(child)...)
	}
	return list
}

// complete asks what the shell's completion script would ask.
func complete(t *testing.T, addr string, words ...string) []string {
	t.Helper()
	r := daybook(t, addr, "", append([]string{"__complete"}, words...)...)
	if r.code != 0 {
		t.Fatalf("completion of %q exits with %d: %s", words, r.code, r.err)
	}
	var out []string
	for line := range strings.Lines(r.out) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
			word, _, _ := strings.Cut(line, "\t")
			out = append(out, word)
		}
	}
	return out
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := daybook(t, "127.0.0.1:1", "", "completion", shell)
		if r.code != 0 || !strings.Contains(r.out, "daybook") || !strings.Contains(r.out, "__complete") {
			t.Errorf("%s: exit code %d, %d bytes: %s", shell, r.code, len(r.out), r.err)
		}
	}
}

func TestCompletion(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	for _, name := range []string{"orders", "payments"} {
		if r := daybook(t, addr, "", "topic", "create", name); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	if r := daybook(t, addr, "", "group", "reset", "billing", "--topic", "orders", "--to-end", "--execute"); r.code != 0 {
		t.Fatal(r.err)
	}
	cases := []struct {
		line string // the last word is being typed; . stands for nothing typed yet
		want string
	}{
		{"topic describe .", "orders payments"},
		{"topic describe orders .", "payments"},
		{"topic delete .", "orders payments"},
		{"consume .", "orders payments"},
		{"consume orders --group .", "billing"},
		{"consume orders --format .", "text json raw hex base64"},
		{"produce .", "orders payments"},
		{"produce orders --acks .", "all 1 0"},
		{"group describe .", "billing"},
		{"group reset .", "billing"},
		{"group reset billing --topic .", "orders payments"},
		{"topic list -o .", "table json"},
		{"bench produce --compression .", "none gzip snappy lz4 zstd"},
	}
	for _, c := range cases {
		words := strings.Fields(c.line)
		words[len(words)-1] = strings.TrimPrefix(words[len(words)-1], ".")
		got := complete(t, addr, words...)
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
	if got := complete(t, addr, "topic", ""); !slices.Contains(got, "add-partitions") {
		t.Errorf("subcommands: %q", got)
	}
}

// TestCompletionWithoutBroker: a shell must not show an error or hang.
func TestCompletionWithoutBroker(t *testing.T) {
	if got := complete(t, "127.0.0.1:1", "topic", "describe", ""); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
