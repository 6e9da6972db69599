//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

const (
	connectTopic = "connect.lines"
	connectLimit = 90 * time.Second
)

// connectFiles are the settings of the worker, its source and its sink; %[1]s is the broker,
// %[2]s the folder.
var connectFiles = map[string]string{
	"worker": `bootstrap.servers=%[1]s
listeners=http://127.0.0.1:0
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename=%[2]s/offsets
offset.flush.interval.ms=1000
`,
	"source": `name=lines-in
connector.class=org.apache.kafka.connect.file.FileStreamSourceConnector
tasks.max=1
file=%[2]s/in.txt
topic=` + connectTopic + `
`,
	"sink": `name=lines-out
connector.class=org.apache.kafka.connect.file.FileStreamSinkConnector
tasks.max=1
file=%[2]s/out.txt
topics=` + connectTopic + `
`,
}

// runConnect sends a file that grows through a topic into another file. Connect is ended in
// the middle, and a second Connect goes on where the first ended.
func runConnect(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	dir := filepath.Join(env.Run, "connect")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range connectFiles {
		text = fmt.Sprintf(text+"# %[1]s %[2]s\n", b.Addr, dir)
		if err := os.WriteFile(filepath.Join(dir, name+".properties"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := createTopics(ctx, b, 1, connectTopic); err != nil {
		return err
	}
	begin := time.Now()
	f := growFile(filepath.Join(dir, "in.txt"))
	defer f.end()
	first, err := connectOnce(ctx, env, b, dir, func(out int64) bool { return out > 0 })
	if err != nil {
		return err
	}
	r.Pass()
	all, err := connectOnce(ctx, env, b, dir, func(out int64) bool {
		if out <= first {
			return false
		}
		f.end()
		return f.err != nil || out >= int64(len(f.lines))
	})
	if err = errors.Join(err, f.err); err != nil {
		return err
	}
	r.Pass()
	got, err := os.ReadFile(filepath.Join(dir, "out.txt"))
	if err != nil {
		return err
	}
	r.Check("lines out are the lines in", sameLines(got, f.lines))
	r.Note("%d lines in %.1f s, %d %% of the bytes before the restart", bytes.Count(f.lines, []byte("\n")),
		time.Since(begin).Seconds(), 100*first/max(all, 1))
	return nil
}

// growing is a file that lines are added to.
type growing struct {
	stop func() // may be called again
	done chan struct{}

	// Valid after end.
	lines []byte
	err   error
}

// growFile adds ten numbered lines of several lengths to the file every 5 ms. They are ASCII:
// the source keeps its place in characters and goes back to it in bytes.
func growFile(path string) *growing {
	stop := make(chan struct{})
	g := &growing{stop: sync.OnceFunc(func() { close(stop) }), done: make(chan struct{})}
	go func() {
		defer close(g.done)
		f, err := os.Create(path)
		if g.err = err; err != nil {
			return
		}
		defer f.Close()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n += 10 {
			begin := len(g.lines)
			for i := n; i < n+10; i++ {
				g.lines = fmt.Appendf(g.lines, "line %d %s\n", i, bytes.Repeat([]byte("-="), i%50))
			}
			if _, g.err = f.Write(g.lines[begin:]); g.err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return g
}

// end adds no more lines.
func (g *growing) end() {
	g.stop()
	<-g.done
}

// connectOnce runs Connect until the size of the sink's file is enough, and ends it as SIGTERM
// does. It returns the size at the end.
func connectOnce(ctx context.Context, env *harness.Env, b *harness.Broker, dir string, enough func(int64) bool) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	file := func(name string) string { return filepath.Join(dir, name+".properties") }
	cmd := javaOf(env.ConnectClassPath(), "org.apache.kafka.connect.cli.ConnectStandalone", file("worker"), file("source"), file("sink"))
	sink := filepath.Join(dir, "out.txt")
	cmd.Log = filepath.Join(env.Run, "logs", "connect", "connect.log")
	p, err := harness.Start(cmd)
	if err != nil {
		return 0, err
	}
	defer p.Signal(syscall.SIGKILL)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if info, err := os.Stat(sink); err == nil && enough(info.Size()) {
			break
		}
		select {
		case <-p.Done():
			return 0, fmt.Errorf("Connect ended by itself, see %s", cmd.Log)
		case <-ctx.Done():
			return 0, fmt.Errorf("the lines did not come out, see %s: %w", cmd.Log, ctx.Err())
		case <-tick.C:
		}
	}
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Done(): // a JVM answers SIGTERM with status 143
		info, err := os.Stat(sink)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("Connect did not end, see %s: %w", cmd.Log, ctx.Err())
	}
}

// sameLines says where got first differs from want.
func sameLines(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			return fmt.Errorf("line %d of %d is %q, sent was %q (line %d)", i, len(g)-1, g[i], w[i], len(w)-1)
		}
	}
	return fmt.Errorf("%d lines came out, %d went in", len(g)-1, len(w)-1)
}
