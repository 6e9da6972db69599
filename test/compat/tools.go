//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

// toolStep is one run of one of Kafka's command line tools.
type toolStep struct {
	name  string
	class string   // of package org.apache.kafka.tools
	args  []string // BROKER and DIR are filled in
	stdin string
	want  []string // patterns that the output must have
	fails bool     // the tool must end with an error
}

const stepLimit = 90 * time.Second

// runTools runs the steps in order; later ones use what earlier ones made.
func runTools(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	exceptions, err := harness.ReadExceptions(env.Exceptions("tools.txt"))
	if err != nil {
		return err
	}
	dir := filepath.Join(env.Run, "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range toolFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, s := range toolSteps {
		exceptions.Judge(s.name, runTool(ctx, env, b, dir, s), b.Kind, r)
	}
	exceptions.Unused(r)
	return ctx.Err()
}

func runTool(ctx context.Context, env *harness.Env, b *harness.Broker, dir string, s toolStep) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	args := make([]string, len(s.args))
	for i, a := range s.args {
		a = regexp.MustCompile(`\bBROKER\b`).ReplaceAllLiteralString(a, b.Addr)
		args[i] = regexp.MustCompile(`\bDIR\b`).ReplaceAllLiteralString(a, dir)
	}
	cmd := java(env, "org.apache.kafka.tools."+s.class, args...)
	cmd.Log = filepath.Join(env.Run, "logs", "tools", regexp.MustCompile(`\W+`).ReplaceAllString(s.name, "-")+".log")
	cmd.Stdin = bytes.NewReader([]byte(s.stdin))
	err := harness.Run(ctx, cmd)
	if (err != nil) != s.fails {
		if err == nil {
			err = fmt.Errorf("it succeeded and should not have")
		}
		return err
	}
	out, err := os.ReadFile(cmd.Log)
	if err != nil {
		return err
	}
	_, out, _ = bytes.Cut(out, []byte("\n")) // the command itself
	for _, want := range s.want {
		if !regexp.MustCompile(`(?m)` + want).Match(out) {
			return fmt.Errorf("its output lacks %q:\n%s", want, out)
		}
	}
	return nil
}
