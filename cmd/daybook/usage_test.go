package main

import (
	"strings"
	"testing"
)

// TestUsageErrors: a command line that cannot be carried out as written exits
// with 2, says which word is wrong, and names the help to read.
func TestUsageErrors(t *testing.T) {
	cases := []struct{ line, want string }{
		{"frobnicate", `unknown command "frobnicate"`},
		{"topc", "did you mean topic?"},
		{"topic lst", "did you mean list?"},
		{"--nope", "unknown flag: --nope"},
		{"topic list --nope", "unknown flag: --nope"},
		{"topic list extra", `unexpected argument "extra"`},
		{"topic create", "TOPIC... is missing"},
		{"topic create x --partitions many", `invalid argument "many"`},
		{"topic create x --config novalue", `"novalue" is not key=value`},
		{"topic alter x --unset a=b", "name the key only"},
		{"topic trim x --before soon", `"soon" is not a position`},
		{"topic add-partitions x", "give one of --to N"},
		{"topic add-partitions x --to 3 --add 2", "give one of --to N"},
		{"produce", "TOPIC is missing"},
		{"produce t --rate -1", "--rate is -1"},
		{"produce t --count -1", "--count is -1"},
		{"produce t --key a --key-delimiter :", "exclude each other"},
		{"produce t --delimiter \\q", `is not an escape`},
		{"produce t --delivery-timeout 1ms", "at least 1s"},
		{"produce t --format json -K :", "does not go with --format json"},
		{"consume t -n -3", "--count is -3"},
		{"consume t --format %z", `"%z" is not a field`},
		{"consume t --format \\x1", `is not an escape`},
		{"consume a b --partition 0", "one topic only"},
		{"consume t --group g --partition 0", "exclude each other"},
		{"consume t --group g --group-protocol newer", "--group-protocol"},
		{"consume t --share g --from start", "share.auto.offset.reset"},
		{"group alter g", "nothing to change"},
		{"txn abort-hanging --after -1s", "must not be negative"},
		{"txn describe", "ID... is missing"},
		{"group reset g", "exactly one of"},
		{"group reset g --topic t --to-start --to-end", "exactly one of"},
		{"group reset g --topic t --all-topics --to-start", "either --topic"},
		{"group reset g --topic t --to-offset -1", "--to-offset is -1"},
		{"group reset g --topic :1 --to-start", "is not a topic"},
		{"group reset g --from-file /no/such --topic t", "leave --topic"},
		{"group reset g --from-file /no/such", "no such file"},
		{"group lag --interval 1ms", "at least 100ms"},
		{"group lag --watch --check", "exclude each other"},
		{"group delete-offsets g", "--topic is missing"},
		{"bench latency --rate 0", "--rate is missing"},
		{"bench produce --records 0", "give a number of records"},
		{"bench produce --size 1XB", "is not a size"},
		{"bench produce --producers 0", "--producers is 0"},
		{"bench produce --acks two", "--acks"},
		{"bench consume --consumers 0", "--consumers is 0"},
		{"bench disk --group-bytes 0", "--group-bytes is 0"},
		{"bench disk --bytes 1 --group-bytes 2", "at least one group"},
		{"version -o xml", "--output is \"xml\""},
		{"topic list --timeout 0s", "--timeout is 0s"},
		{"topic list --bootstrap ,", "--bootstrap is empty"},
		{"topic list --bootstrap a:b:c", "write it as host:port"},
		{"topic list --sasl-mechanism magic", "--sasl-mechanism"},
		{"topic list --tls-cert a", "belong together"},
		{"completion tcsh", `unknown command "tcsh"`},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			r := daybook(t, "127.0.0.1:1", "", strings.Fields(c.line)...)
			if r.code != 2 {
				t.Errorf("exit code %d, want 2\n%s", r.code, r.err)
			}
			if !strings.Contains(r.err, c.want) {
				t.Errorf("want %q in:\n%s", c.want, r.err)
			}
			if !strings.Contains(r.err, "--help`") {
				t.Errorf("no help is named in:\n%s", r.err)
			}
			if r.out != "" {
				t.Errorf("results on standard output: %s", r.out)
			}
		})
	}
}

// TestNoBroker: a broker that is not there is a failure with the remedy.
func TestNoBroker(t *testing.T) {
	for _, line := range []string{"topic list", "consume t", "produce t --value x", "group lag", "bench produce -n 1"} {
		r := daybook(t, "127.0.0.1:1", "", strings.Fields(line)...)
		if r.code != 1 || !strings.Contains(r.err, "no broker answers at 127.0.0.1:1 (") || !strings.Contains(r.err, "daybook serve") {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.err)
		}
	}
}

// TestHelp: every command has a summary and examples, and each example is a
// command that exists.
func TestHelp(t *testing.T) {
	root := newRoot(testGlobals())
	for _, c := range all(root) {
		if c.Name() == "help" || strings.HasPrefix(c.CommandPath(), "daybook completion") {
			continue
		}
		if c.Short == "" {
			t.Errorf("%s has no summary", c.CommandPath())
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			_, command, ok := strings.Cut(line, "daybook ")
			if !ok {
				t.Errorf("%s: example without daybook: %s", c.CommandPath(), line)
				continue
			}
			found, _, err := root.Find(strings.Fields(command))
			if err != nil || found == root {
				t.Errorf("%s: example runs no command: %s", c.CommandPath(), line)
			}
		}
	}
}
