package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// load runs the three sources through flags, environment and file.
func load(t *testing.T, args, environ []string, file string) (*Loaded, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "daybook.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		environ = append(environ, "DAYBOOK_CONFIG="+path)
	}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags := BindFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return Load(flags, environ)
}

func TestDefaults(t *testing.T) {
	l, err := load(t, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if l.DataDir != "./daybook-data" || l.KafkaAddr != "127.0.0.1:9092" || l.HTTPAddr != "127.0.0.1:8080" || l.Sync.Mode != SyncAlways {
		t.Errorf("unexpected defaults: %+v", *l.Config)
	}
}

func TestPrecedence(t *testing.T) {
	flag, env, file := "--default-partitions=7", "DAYBOOK_DEFAULT_PARTITIONS=5", "default-partitions: 3\n"
	for _, c := range []struct {
		name      string
		args, env []string
		file      string
		want      int32
		source    string
	}{
		{"default", nil, nil, "", 1, "default"},
		{"file", nil, nil, "# first\n" + file, 3, ":2"},
		{"env over file", nil, []string{env}, file, 5, "env DAYBOOK_DEFAULT_PARTITIONS"},
		{"flag over both", []string{flag}, []string{env}, file, 7, "flag --default-partitions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := load(t, c.args, c.env, c.file)
			if err != nil {
				t.Fatal(err)
			}
			if l.DefaultPartitions != c.want || !strings.HasSuffix(string(l.Sources["default-partitions"]), c.source) {
				t.Errorf("got %d from %q, want %d from %q", l.DefaultPartitions, l.Sources["default-partitions"], c.want, c.source)
			}
		})
	}
}

func TestFaultsNamePlaceKeyAndRemedy(t *testing.T) {
	for _, c := range []struct {
		name      string
		args, env []string
		file      string
		want      []string
	}{
		{"misspelt key", nil, nil, "data: d\nkafak: off\n", []string{"daybook.yaml:2:", "kafak", `did you mean "kafka"?`}},
		{"underscore for dash", nil, nil, "journal_cap: 1GiB\n", []string{":1:", `did you mean "journal-cap"?`}},
		{"variable for key", nil, nil, "DAYBOOK_KAFKA_ADDR: off\n", []string{`did you mean "kafka"?`}},
		{"strange key", nil, nil, "zookeeper.connect: x\n", []string{":1:", "zookeeper.connect", "--help"}},
		{"bad value", nil, nil, "\njournal-cap: lots\n", []string{":2:", "journal-cap", `"lots" is not a size`}},
		{"out of range", nil, nil, "journal-cap: 1MiB\n", []string{"journal-cap", "64MiB to 1TiB"}},
		{"twice", nil, nil, "sync: none\nsync: always\n", []string{":2:", "sync", "line 1"}},
		{"nested", nil, nil, "kafka:\n  addr: x\n", []string{":1:", "kafka", "one value"}},
		{"no mapping", nil, nil, "- kafka\n", []string{":1:", "option: value"}},
		{"no yaml", nil, nil, "data: [\n", []string{"daybook.yaml", "line"}},
		{"all faults at once", nil, nil, "kafak: off\nsync: now\n", []string{":1:", ":2:"}},
		{"no such file", []string{"--config=nowhere.yaml"}, nil, "", []string{"nowhere.yaml"}},
		{"flag", []string{"--sync=interval"}, nil, "", []string{"--sync", "interval=DURATION"}},
		{"flag interval", []string{"--sync=interval=1h"}, nil, "", []string{"1ms to 1m"}},
		{"unknown flag", []string{"--amqp=off"}, nil, "", []string{"--amqp"}},
		{"environment", nil, []string{"DAYBOOK_KAFKA_ADDR=9092"}, "", []string{"DAYBOOK_KAFKA_ADDR", "host:port"}},
		{"advertise", []string{"--advertise=http://x/"}, nil, "", []string{"--advertise", "host:port"}},
		{"same port twice", []string{"--http=127.0.0.1:9092"}, nil, "", []string{"--kafka and --http", "127.0.0.1:9092"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.args, c.env, c.file)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestAFileMayTurnFrontsOff(t *testing.T) {
	l, err := load(t, nil, nil, "http: off\nsync: interval=50ms\nretention-time: 36h\n")
	if err != nil {
		t.Fatal(err)
	}
	if l.HTTPAddr != Off || l.Sync != (Sync{SyncInterval, 50 * time.Millisecond}) || l.RetentionTime != 36*time.Hour {
		t.Errorf("got %+v", *l.Config)
	}
}

func TestEnvironmentNotes(t *testing.T) {
	l, err := load(t, nil, []string{"DAYBOOK_KAFKA=x", "DAYBOOK_SYCN=none", "DAYBOOK_PORT_9092_TCP_ADDR=10.0.0.1", "HOME=/"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Notes) != 2 || !strings.Contains(l.Notes[0], "DAYBOOK_KAFKA_ADDR") || !strings.Contains(l.Notes[1], "DAYBOOK_SYNC") {
		t.Errorf("notes: %q", l.Notes)
	}
}

// TestPrintedConfigIsAConfigFile reads what --print-config shows back as a file.
func TestPrintedConfigIsAConfigFile(t *testing.T) {
	l, err := load(t, []string{"--kafka=off", "--data=a: b # c", "--log-level=debug"}, []string{"DAYBOOK_RETENTION_SIZE=1500MB"}, "memory-budget: 128MiB\n")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := l.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# flag --kafka", "# env DAYBOOK_RETENTION_SIZE", "daybook.yaml:1\n", "# default"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	again, err := load(t, nil, nil, out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if *again.Config != *l.Config {
		t.Errorf("read back\n%+v\nfrom\n%+v", *again.Config, *l.Config)
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]Size{"0": 0, "17": 17, "64MiB": 64 << 20, "1GiB": 1 << 30, "1 GB": 1e9, "5B": 5} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-1", "1.5GiB", "9999999999999GiB", "MiB", "0x10"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d; want an error", s, got)
		}
	}
}

// FuzzFile: any file either loads or is refused with its name, and never panics.
func FuzzFile(f *testing.F) {
	f.Add([]byte("kafka: off\n"))
	f.Add([]byte("kafka: &a [*a]\n"))
	f.Add([]byte("? {}\n: x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Default()
		err := parseFile("f.yaml", data, func(o Option, value string, _ int) error { return o.set(c, value) })
		if err != nil && !strings.Contains(err.Error(), "f.yaml") {
			t.Errorf("%v does not name the file", err)
		}
	})
}
