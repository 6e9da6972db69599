//go:build unix

// Command compat runs other people's Kafka clients, tools and test suites against Daybook,
// or against a real Kafka to prove the checks themselves. It owns the list of suites and the
// closing table. Start it with test/compat/run; docs/compat.md says what each suite shows.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

func main() {
	only := flag.String("only", "", "suites to run, with commas between; empty: all but the long ones")
	kind := flag.String("broker", "daybook", "daybook, kafka, or HOST:PORT of a broker that runs")
	list := flag.Bool("list", false, "name the suites")
	keep := flag.Bool("keep", false, "keep the brokers' data")
	kafka := flag.String("kafka", "", "start or stop a real Kafka and end (see test/compat/kafka)")
	kafkaDir := flag.String("kafka-dir", "", "its folder")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	env, err := harness.NewEnv(os.Getenv("DAYBOOK_COMPAT_DIR"))
	switch {
	case err != nil:
	case *list:
		for _, s := range suites {
			note := ""
			if s.long {
				note = " (long: runs only when named)"
			}
			fmt.Printf("%-14s %s%s\n", s.name, s.shows, note)
		}
	case *kafka != "":
		err = harness.KafkaVerb(ctx, env, *kafka, *kafkaDir)
	default:
		err = runAll(ctx, env, *kind, *only, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func runAll(ctx context.Context, env *harness.Env, kind, only string, keep bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if err := env.Clean(); err != nil {
		return err
	}
	brokers, err := harness.NewBrokers(ctx, env, kind)
	if err != nil {
		return err
	}
	var reports []*harness.Report
	for _, s := range chosen {
		r := &harness.Report{Suite: s.name}
		reports = append(reports, r)
		fmt.Printf("== %s: %s\n", s.name, s.shows)
		begin := time.Now()
		if err := runSuite(ctx, env, brokers, s, r, keep); err != nil {
			r.Fail("%v", err)
		}
		r.Took = time.Since(begin)
		fmt.Printf("   %d passed, %d failed, %d excepted in %.1f s\n", r.Passed, r.Failed, r.Excepted, r.Took.Seconds())
	}
	if !harness.PrintTable(os.Stdout, reports) {
		return fmt.Errorf("not everything passed; logs are in %s", env.Run)
	}
	return nil
}

func choose(only string) ([]suite, error) {
	var chosen []suite
	if only == "" {
		for _, s := range suites {
			if !s.long {
				chosen = append(chosen, s)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no suite is called %q; -list names them", name)
		}
		chosen = append(chosen, suites[i])
	}
	return chosen, nil
}

// runSuite installs what s needs and gives it a broker of its own.
func runSuite(ctx context.Context, env *harness.Env, brokers *harness.Brokers, s suite, r *harness.Report, keep bool) error {
	for _, part := range s.needs {
		if err := env.Install(ctx, part); err != nil {
			return err
		}
	}
	broker, err := brokers.Start(ctx, s.name, s.broker)
	if err != nil {
		return err
	}
	err = s.run(ctx, env, broker, r)
	if stopErr := broker.Stop(); err == nil {
		err = stopErr
	}
	if !keep {
		broker.Discard()
	}
	return err
}
