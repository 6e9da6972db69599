package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeRefusesBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "d.yaml")
	if err := os.WriteFile(file, []byte("data: x\nkafak: off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := []string{"--kafka=127.0.0.1:0", "--http=off", "--data=" + dir}
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"unknown flag", []string{"--amqp=off"}, 2, []string{"unknown flag: --amqp", "daybook serve --help"}},
		{"argument", []string{"now"}, 2, []string{`"now"`, "--help"}},
		{"bad value", []string{"--sync=sometimes"}, 2, []string{"--sync", "always"}},
		{"config file", []string{"--config", file}, 2, []string{file + ":2: kafak", `did you mean "kafka"?`}},
		{"no config file", []string{"--config", file + "x"}, 2, []string{file + "x"}},
		{"taken port", append(quiet, "--kafka="+taken.Addr().String()), 1, []string{"--kafka", taken.Addr().String(), "port 0"}},
		{"foreign address", append(quiet, "--kafka=192.0.2.1:0"), 1, []string{"--kafka", "no address of this machine"}},
		{"address file", append(quiet, "--addr-file="+filepath.Join(dir, "no", "such", "file")), 1, []string{"--addr-file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := daybook(t, "127.0.0.1:1", "", append([]string{"serve"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(r.err, want) {
					t.Errorf("lacks %q:\n%s", want, r.err)
				}
			}
		})
	}
}

func TestPrintConfig(t *testing.T) {
	r := daybook(t, "127.0.0.1:1", "", "serve", "--sync=none", "--print-config")
	if r.code != 0 || !strings.Contains(r.out, "# flag --sync") || !strings.Contains(r.out, "kafka: 127.0.0.1:9092") {
		t.Errorf("exit %d:\n%s%s", r.code, r.out, r.err)
	}
}
