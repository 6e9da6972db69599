//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

const smokeLimit = 4 * time.Minute

// runSmoke has each client library do everyday things, one library after the other.
func runSmoke(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	exceptions, err := harness.ReadExceptions(env.Exceptions("smoke.txt"))
	if err != nil {
		return err
	}
	families := programs(env)
	families = append(families, program{name: "java", args: java(env, "Smoke").Args})
	for _, p := range families {
		if err := smokeFamily(ctx, env, b, p, exceptions, r); err != nil {
			r.Fail("%s: %v", p.name, err)
		}
	}
	for name, err := range smokeKcat(ctx, env, b) {
		exceptions.Judge("kcat "+name, err, b.Kind, r)
	}
	exceptions.Unused(r)
	return nil
}

// smokeFamily reads the lines that clients/README.md defines.
func smokeFamily(ctx context.Context, env *harness.Env, b *harness.Broker, p program,
	exceptions harness.Exceptions, r *harness.Report,
) error {
	ctx, cancel := context.WithTimeout(ctx, smokeLimit)
	defer cancel()
	cmd := p.command("smoke", b.Addr)
	if p.name == "java" {
		cmd = p.command(b.Addr)
	}
	checks := 0
	cmd.Log = filepath.Join(env.Run, "logs", "smoke", p.name+".log")
	cmd.OnLine = func(line string) {
		verdict, rest := "", ""
		for _, v := range []string{"ok ", "not ok ", "n/a "} {
			if after, found := strings.CutPrefix(line, v); found {
				verdict, rest = v, after
			}
		}
		if verdict == "" {
			return
		}
		checks++
		name, why, _ := strings.Cut(rest, ": ")
		switch verdict {
		case "ok ":
			exceptions.Judge(p.name+" "+name, nil, b.Kind, r)
		case "n/a ":
			r.Excepted++
		default:
			exceptions.Judge(p.name+" "+name, fmt.Errorf("%s (log: %s)", why, cmd.Log), b.Kind, r)
		}
	}
	runErr := harness.Run(ctx, cmd)
	if ctx.Err() != nil {
		return runErr
	}
	if checks < 8 {
		return fmt.Errorf("only %d checks ran: %w", checks, runErr)
	}
	return nil
}

// smokeKcat drives kcat as a person does, and yields the outcome of each thing by name.
func smokeKcat(ctx context.Context, env *harness.Env, b *harness.Broker) map[string]error {
	kcat := func(stdin string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		log := filepath.Join(env.Run, "logs", "smoke", "kcat.log")
		var out bytes.Buffer
		err := harness.Run(ctx, harness.Command{
			Args: append([]string{"kcat", "-b", b.Addr}, args...), Log: log,
			Stdin: strings.NewReader(stdin), OnLine: func(line string) { fmt.Fprintln(&out, line) },
		})
		return out.String(), err
	}
	want := func(got string, err error, parts ...string) error {
		for _, part := range parts {
			if err == nil && !strings.Contains(got, part) {
				err = fmt.Errorf("its output lacks %q:\n%s", part, got)
			}
		}
		return err
	}
	outcomes := make(map[string]error)
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := "kcat." + codec
		_, err := kcat("k1:one\nk2:two\n", "-P", "-t", topic, "-K", ":", "-z", codec, "-H", "origin=kcat")
		if err == nil {
			var got string
			got, err = kcat("", "-C", "-t", topic, "-e", "-q", "-o", "beginning", "-f", "%k=%s %h @%o\n")
			err = want(got, err, "k1=one origin=kcat @0", "k2=two origin=kcat @1")
		}
		outcomes["codec "+codec] = err
	}
	got, err := kcat("", "-L", "-J")
	outcomes["metadata"] = want(got, err, `"id":1`, `"topic":"kcat.zstd"`)
	got, err = kcat("", "-Q", "-t", "kcat.zstd:0:-1")
	outcomes["query offsets"] = want(got, err, "kcat.zstd [0] offset 2")
	got, err = kcat("", "-G", "kcat.group", "-e", "-q", "-X", "auto.offset.reset=earliest", "kcat.zstd", "kcat.gzip")
	outcomes["balanced group"] = want(got, err, "one", "two")
	got, err = kcat("", "-C", "-t", "kcat.zstd", "-e", "-q", "-o", "s@0")
	outcomes["from a time"] = want(got, err, "one", "two")
	file := filepath.Join(env.Run, "kcat-file")
	err = os.WriteFile(file, bytes.Repeat([]byte("x"), 900_000), 0o644)
	if err == nil {
		_, err = kcat("", "-P", "-t", "kcat.file", file)
	}
	if err == nil {
		got, err = kcat("", "-C", "-t", "kcat.file", "-e", "-q", "-f", "%S\n")
		err = want(got, err, "900000")
	}
	outcomes["a file as one message"] = err
	return outcomes
}
