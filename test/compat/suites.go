//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/test/compat/flights"
	"github.com/daybook-mq/daybook/test/compat/harness"
)

// suite is one row of the table. It gets a broker with an empty data folder.
type suite struct {
	name   string
	shows  string
	needs  []harness.Part
	broker harness.Options
	long   bool // runs only when it is named
	run    func(context.Context, *harness.Env, *harness.Broker, *harness.Report) error
}

var suites = []suite{
	{
		name:  "smoke",
		shows: "everyday things with each client library and kcat",
		needs: []harness.Part{harness.PartPython, harness.PartNode, harness.PartJava, harness.PartFranz, harness.PartKcat},
		run:   runSmoke,
	},
	{
		name:  "flights",
		shows: "one million real events through five client libraries and back, members killed",
		needs: []harness.Part{harness.PartFlights, harness.PartPython, harness.PartNode, harness.PartJava, harness.PartFranz},
		run:   runFlights,
	},
	{
		name:  "kgo",
		shows: "franz-go's own tests",
		needs: []harness.Part{harness.PartKgo},
		run:   runKgo,
	},
	{
		name:   "kafka-go",
		shows:  "segmentio/kafka-go's own tests",
		needs:  []harness.Part{harness.PartKafkaGo},
		broker: harness.Options{Advertise: "localhost", MaxMessage: 200_000_000}, // as its own CI sets them
		run:    runKafkaGo,
	},
	{
		name:  "shares",
		shows: "Kafka's share consumer and its tools for share groups",
		needs: []harness.Part{harness.PartJava},
		run:   runShares,
	},
	{
		name:  "tools",
		shows: "Kafka's command line tools",
		needs: []harness.Part{harness.PartJava},
		run:   runTools,
	},
	{
		name:  "streams",
		shows: "a Kafka Streams word count, exactly once, while it and the broker are killed in turn",
		needs: []harness.Part{harness.PartJava},
		long:  true,
		run:   runStreams,
	},
	{
		name:  "connect",
		shows: "a file through Kafka Connect and back, over a restart of Connect",
		needs: []harness.Part{harness.PartConnect},
		long:  true,
		run:   runConnect,
	},
}

func runFlights(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	return flights.Run(ctx, env, b, flightClients(env), os.Getenv("WHOLE") != "", r)
}

// runKgo sets what franz-go's own CI sets: its share tests release a record more often than
// the default limit of deliveries allows.
func runKgo(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	limit := "10"
	answers, err := kadm.NewClient(cl).AlterBrokerConfigs(ctx,
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "group.share.delivery.count.limit", Value: &limit}}, 1)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	if err != nil && b.Kind != "kafka" { // Kafka takes it only from its file
		return err
	}
	return harness.RunGoSuite(ctx, env, harness.GoSuite{
		Name:       "kgo",
		Dir:        env.ModuleCopy(harness.FranzGoModule),
		Packages:   []string{"./pkg/kgo"},
		Env:        []string{"KGO_TEST_RF=1", "KGO_SEEDS=" + b.Addr, "KGO_TEST_RECORDS=50000"},
		Exceptions: "kgo.txt",
		Limit:      10 * time.Minute,
	}, b.Kind, r)
}

// runKafkaGo runs the tests in a copy where the port that they name, 9092, is the broker's.
func runKafkaGo(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		return err
	}
	dir := filepath.Join(env.Run, "kafka-go")
	if err := os.CopyFS(dir, os.DirFS(env.ModuleCopy(harness.KafkaGoModule))); err != nil {
		return err
	}
	if err := harness.ReplaceInSources(dir, "9092", port); err != nil {
		return err
	}
	return harness.RunGoSuite(ctx, env, harness.GoSuite{
		Name:       "kafka-go",
		Dir:        dir,
		Packages:   []string{"./..."},
		Flags:      []string{"-p", "1", "-mod=mod"},                         // the packages share one broker; its go.mod is not tidy
		Env:        []string{"KAFKA_SKIP_NETTEST=1", "KAFKA_VERSION=3.7.0"}, // as its own CI
		Exceptions: "kafka-go.txt",
		Limit:      10 * time.Minute,
	}, b.Kind, r)
}
