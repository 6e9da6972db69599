//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

const shareTool = "consumer.group.ShareGroupCommand"

// shareSetUp makes what the Java program needs, with Kafka's own tools.
var shareSetUp = []toolStep{
	{name: "shares topic", class: topicTool, args: boot("--create", "--topic", "shares", "--partitions", "1"), want: []string{`Created topic`}},
	{name: "shares dead letters", class: topicTool,
		args: boot("--create", "--topic", "dlq.shares", "--partitions", "1", "--config", "errors.deadletterqueue.group.enable=true"),
		want: []string{`Created topic`}},
	{name: "shares group settings", class: configTool,
		args: boot("--alter", "--entity-type", "groups", "--entity-name", "shares.java", "--add-config",
			"share.auto.offset.reset=earliest,share.record.lock.duration.ms=15000,share.renew.acknowledge.enable=true,"+
				"errors.deadletterqueue.topic.name=dlq.shares,errors.deadletterqueue.copy.record.enable=true"),
		want: []string{`Completed updating config for group shares\.java`}},
	{name: "shares describe group settings", class: configTool,
		args: boot("--describe", "--entity-type", "groups", "--entity-name", "shares.java"),
		want: []string{`errors\.deadletterqueue\.topic\.name=dlq\.shares`, `share\.record\.lock\.duration\.ms=15000`}},
}

// shareSteps look at what the Java program left, and take it away.
var shareSteps = []toolStep{
	{name: "share-groups list", class: shareTool, args: boot("--list"), want: []string{`^shares\.java$`}},
	{name: "share-groups list with states", class: shareTool, args: boot("--list", "--state"), want: []string{`^shares\.java\s+Empty`}},
	{name: "share-groups describe", class: shareTool, args: boot("--describe", "--group", "shares.java"),
		want: []string{`shares\.java\s+shares\s+0\s+(\S+\s+)?\d+\s+0$`}},
	{name: "share-groups describe state", class: shareTool, args: boot("--describe", "--state", "--group", "shares.java"),
		want: []string{`shares\.java\s+\S+:\d+ +\(1\)\s+Empty\s+0`}},
	{name: "share-groups describe members", class: shareTool, args: boot("--describe", "--members", "--group", "shares.java"),
		want: []string{`no active members`}},
	{name: "share-groups reset dry run", class: shareTool,
		args: boot("--reset-offsets", "--group", "shares.java", "--topic", "shares", "--to-earliest", "--dry-run"),
		want: []string{`shares\.java\s+shares\s+0\s+0`}},
	{name: "share-groups reset", class: shareTool,
		args: boot("--reset-offsets", "--group", "shares.java", "--topic", "shares", "--to-earliest", "--execute"),
		want: []string{`shares\.java\s+shares\s+0\s+0`}},
	{name: "share-groups describe after reset", class: shareTool, args: boot("--describe", "--group", "shares.java"),
		want: []string{`shares\.java\s+shares\s+0\s+(\S+\s+)?0\s`}},
	{name: "share-consumer-perf-test", class: "ShareConsumerPerformance",
		args: boot("--topic", "shares", "--group", "shares.java", "--num-records", "200", "--timeout", "30000"),
		want: []string{`, 2\d\d, \d+$`}},
	{name: "share-groups delete offsets", class: shareTool,
		args: boot("--delete-offsets", "--group", "shares.java", "--topic", "shares"), want: []string{`shares\s+Successful`}},
	{name: "share-groups delete", class: shareTool, args: boot("--delete", "--group", "shares.java"),
		want: []string{`'shares\.java'\) was successful`}},
	{name: "share-groups describe a deleted group", class: shareTool, args: boot("--describe", "--group", "shares.java"),
		want: []string{`GroupIdNotFoundException`}},
}

// runShares has Kafka's share consumer say every word of its protocol, with Kafka's tools before and after.
func runShares(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	dir := filepath.Join(env.Run, "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, s := range shareSetUp {
		r.Check(s.name, runTool(ctx, env, b, dir, s))
	}
	if err := shareClient(ctx, env, b, r); err != nil {
		return err
	}
	for _, s := range shareSteps {
		r.Check(s.name, runTool(ctx, env, b, dir, s))
	}
	return ctx.Err()
}

// shareClient runs the Java program and reads its lines, as clients/README.md defines them.
func shareClient(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	ctx, cancel := context.WithTimeout(ctx, smokeLimit)
	defer cancel()
	cmd := java(env, "Share", b.Addr, "shares.java", "shares", "dlq.shares")
	cmd.Log = filepath.Join(env.Run, "logs", "shares", "java.log")
	checks := 0
	cmd.OnLine = func(line string) {
		if name, ok := strings.CutPrefix(line, "ok "); ok {
			checks++
			r.Check("java "+name, nil)
		} else if rest, ok := strings.CutPrefix(line, "not ok "); ok {
			checks++
			if b.Kind == "kafka" && strings.HasPrefix(rest, "dead letters keep headers") {
				r.Excepted++ // Daybook keeps more
				return
			}
			r.Fail("java %s (log: %s)", rest, cmd.Log)
		}
	}
	err := harness.Run(ctx, cmd)
	if checks < 7 {
		return fmt.Errorf("only %d checks ran: %w", checks, err)
	}
	return nil
}
