//go:build unix

package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Command describes one program to run.
type Command struct {
	Dir   string
	Env   []string // added to the process's environment
	Args  []string
	Log   string // file that both streams are appended to
	Stdin io.Reader
	// OnLine, if set, is given each line of standard output, from one goroutine.
	OnLine func(string)
}

// Process is a started Command.
type Process struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error // valid once done is closed
}

// Start runs c in its own process group.
func Start(c Command) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(c.Log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "$ %s\n", strings.Join(c.Args, " "))
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.Stdout = c.Dir, c.Stdin, log, log
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out io.ReadCloser
	if c.OnLine != nil {
		cmd.Stdout = nil
		if out, err = cmd.StdoutPipe(); err != nil {
			log.Close()
			return nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, err
	}
	p := &Process{cmd: cmd, log: log, done: make(chan struct{})}
	go p.wait(out, c.OnLine)
	return p, nil
}

// wait reads the output to its end, reaps the process and closes done.
func (p *Process) wait(out io.Reader, onLine func(string)) {
	defer close(p.done)
	defer p.log.Close()
	if onLine != nil {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			fmt.Fprintln(p.log, lines.Text())
			onLine(lines.Text())
		}
		io.Copy(io.Discard, out)
	}
	p.err = p.cmd.Wait()
}

// Pid of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal is sent to the whole process group.
func (p *Process) Signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// Wait until the process ends; when ctx ends first the group is killed.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		p.Signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("killed after its time limit: %w", ctx.Err())
	}
}

// Stop asks the process to end and kills it after the grace.
func (p *Process) Stop(grace time.Duration) error {
	p.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return p.Wait(ctx)
}

// Run starts c and waits for it. The error carries the end of the log.
func Run(ctx context.Context, c Command) error {
	p, err := Start(c)
	if err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		return fmt.Errorf("%s: %w\n%s(whole log: %s)", c.Args[0], err, tail(c.Log, 15), c.Log)
	}
	return nil
}

// Output runs args and returns what they print on standard output, without a log.
func Output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// tail returns the last n lines of a file, indented.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
