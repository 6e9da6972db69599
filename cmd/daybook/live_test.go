package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/daybooktest"
)

// buffer is what a running command prints.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// job is a command that runs beside the test.
type job struct {
	out, err  buffer
	interrupt context.CancelFunc
	code      chan int
}

func start(t *testing.T, addr string, stdin io.Reader, args ...string) *job {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	j := &job{interrupt: cancel, code: make(chan int, 1)}
	g := testGlobals()
	g.Bootstrap, g.In, g.Out, g.Err = addr, stdin, &j.out, &j.err
	go func() { j.code <- run(ctx, g, args) }()
	t.Cleanup(cancel)
	return j
}

// wait gives the exit code.
func (j *job) wait(t *testing.T) int {
	t.Helper()
	select {
	case c := <-j.code:
		return c
	case <-time.After(30 * time.Second):
		t.Fatalf("the command does not end\n%s", j.err.String())
		return -1
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond) // between looks at the condition
	}
}

func must0(t *testing.T, r result) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	return r
}

func lines(n int, f string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, f+"\n", i)
	}
	return b.String()
}

// TestLiveGroup: offsets of a group with members cannot be reset nor deleted;
// an interrupted member exits with 130, has committed what it printed and has
// left the group.
func TestLiveGroup(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	must0(t, daybook(t, addr, lines(3, "a%d"), "produce", "work", "--create"))
	member := start(t, addr, nil, "consume", "work", "--group", "g", "-f", "--from", "start")
	eventually(t, "three records are printed", func() bool { return strings.Count(member.out.String(), "\n") == 3 })

	for _, line := range []string{"group reset g --topic work --to-start --execute", "group delete g --yes"} {
		r := daybook(t, addr, "", strings.Fields(line)...)
		if r.code != 1 || !strings.Contains(r.err, "group describe") {
			t.Errorf("%s on a live group: exit code %d\n%s", line, r.code, r.err)
		}
	}
	if r := must0(t, daybook(t, addr, "", "group", "describe", "g")); !strings.Contains(r.out, "Stable") || !strings.Contains(r.out, "work:0") {
		t.Errorf("describe of a live group:\n%s", r.out)
	}
	member.interrupt()
	if c := member.wait(t); c != 130 {
		t.Errorf("interrupted: exit code %d, want 130\n%s", c, member.err.String())
	}
	must0(t, daybook(t, addr, lines(2, "b%d"), "produce", "work"))
	if r := must0(t, daybook(t, addr, "", "consume", "work", "--group", "g")); r.out != lines(2, "b%d") {
		t.Errorf("after the interruption the group reads %q", r.out)
	}
	must0(t, daybook(t, addr, "", "group", "reset", "g", "--topic", "work", "--to-start", "--execute"))
	must0(t, daybook(t, addr, "", "group", "delete", "g", "--yes"))
}

// brokenPipe takes some bytes and then is gone.
type brokenPipe struct{ left int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// TestBrokenPipe: when the reader of the output goes, the command ends without
// a word, and a group has committed only what was taken.
func TestBrokenPipe(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	must0(t, daybook(t, addr, lines(100_000, "%08d"), "produce", "work", "--create"))
	var errs bytes.Buffer
	g := testGlobals()
	g.Bootstrap, g.Out, g.Err = addr, &brokenPipe{left: 100_000}, &errs
	if c := run(t.Context(), g, []string{"consume", "work", "--group", "g"}); c != 1 || errs.Len() > 0 {
		t.Errorf("exit code %d, want 1 in silence: %s", c, errs.String())
	}
	r := must0(t, daybook(t, addr, "", "consume", "work", "--group", "g", "-n", "1"))
	var next int
	if _, err := fmt.Sscan(r.out, &next); err != nil || next > 100_000/9 {
		t.Errorf("the group goes on at %q; at most %d records were taken", r.out, 100_000/9)
	}
}

// TestNothingTakenNothingCommitted: records that wait in our own buffer when the
// output breaks are not committed.
func TestNothingTakenNothingCommitted(t *testing.T) {
	addr := daybooktest.Start(t).Addr()
	must0(t, daybook(t, addr, lines(10, "%d"), "produce", "work", "--create"))
	g := testGlobals()
	g.Bootstrap, g.Out, g.Err = addr, &brokenPipe{}, io.Discard
	if c := run(t.Context(), g, []string{"consume", "work", "--group", "g"}); c != 1 {
		t.Errorf("exit code %d, want 1", c)
	}
	if r := must0(t, daybook(t, addr, "", "consume", "work", "--group", "g")); r.out != lines(10, "%d") {
		t.Errorf("the group goes on with %q", r.out)
	}
}

// TestProduceOverRestart: a broker that dies and comes back costs nothing: each
// line is there once.
func TestProduceOverRestart(t *testing.T) {
	b := daybooktest.Start(t)
	must0(t, daybook(t, b.Addr(), "", "topic", "create", "work"))
	in, feed := io.Pipe()
	p := start(t, b.Addr(), in, "produce", "work", "-o", "json")
	send := func(from, to int) {
		for i := from; i < to; i++ {
			fmt.Fprintf(feed, "%08d\n", i)
		}
	}
	send(0, 5000)
	b.Kill()
	b.Restart()
	send(5000, 10_000)
	feed.Close()
	if c := p.wait(t); c != 0 || !strings.Contains(p.out.String(), `"records_acknowledged": 10000`) {
		t.Fatalf("exit code %d: %s%s", c, p.out.String(), p.err.String())
	}
	if r := must0(t, daybook(t, b.Addr(), "", "consume", "work")); r.out != lines(10_000, "%08d") {
		t.Errorf("%d lines came back, want 10000 in order", strings.Count(r.out, "\n"))
	}
}

// TestProduceWithoutBroker: when the broker stays away the command gives up with
// 1, and what it counts as acknowledged is in the log.
func TestProduceWithoutBroker(t *testing.T) {
	b := daybooktest.Start(t)
	must0(t, daybook(t, b.Addr(), "", "topic", "create", "work"))
	in, feed := io.Pipe()
	p := start(t, b.Addr(), in, "produce", "work", "--delivery-timeout", "1s")
	fmt.Fprint(feed, lines(1000, "%d"))
	eventually(t, "the first thousand are in the log", func() bool {
		return strings.Contains(daybook(t, b.Addr(), "", "topic", "describe", "work").out, "1,000 in")
	})
	b.Kill()
	go func() { // blocks once the command has stopped reading
		fmt.Fprint(feed, lines(10, "late %d"))
		feed.Close()
	}()
	if c := p.wait(t); c != 1 {
		t.Errorf("exit code %d, want 1", c)
	}
	text := p.err.String()
	for _, want := range []string{"Acknowledged 1,000 records", "of 1,0", "not acknowledged", "--delivery-timeout"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	b.Restart()
	if r := must0(t, daybook(t, b.Addr(), "", "consume", "work", "-n", "1000")); r.out != lines(1000, "%d") {
		t.Errorf("acknowledged records are missing")
	}
}

// TestProduceInterrupted: stopped at an open input, the command says how many
// records were acknowledged.
func TestProduceInterrupted(t *testing.T) {
	b := daybooktest.Start(t)
	must0(t, daybook(t, b.Addr(), "", "topic", "create", "work"))
	in, feed := io.Pipe()
	defer feed.Close()
	p := start(t, b.Addr(), in, "produce", "work")
	fmt.Fprint(feed, lines(7, "%d"))
	eventually(t, "the records are in the log", func() bool {
		return strings.Contains(daybook(t, b.Addr(), "", "topic", "describe", "work").out, "Records:   7 in")
	})
	p.interrupt()
	if c := p.wait(t); c != 130 || !strings.Contains(p.err.String(), "Acknowledged 7 records") {
		t.Errorf("exit code %d, want 130\n%s", c, p.err.String())
	}
}
