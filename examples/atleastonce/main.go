// Atleastonce processes what it read before it commits its position: a crash in
// between repeats those orders and loses none.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/examples/orders"
)

func main() {
	broker := flag.String("broker", "127.0.0.1:9092", "a broker's address")
	n := flag.Int("n", 100, "orders to process")
	flag.Parse()
	if err := run(context.Background(), *broker, *n); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, broker string, n int) error {
	if err := orders.Ensure(ctx, broker, n); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup("at-least-once"), kgo.ConsumeTopics(orders.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll()) // nobody takes a partition over between the work and its commit
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for done := 0; done < n; {
		fetches := client.PollRecords(ctx, n-done)
		if err := fetches.Err(); err != nil {
			return err
		}
		records := fetches.Records()
		for _, r := range records {
			fmt.Printf("charged %s for %s\n", r.Value, r.Key)
			done++
		}
		// Then the commit: until here a crash would bring these orders again.
		if err := client.CommitRecords(ctx, records...); err != nil {
			return err
		}
		client.AllowRebalance()
	}
	return nil
}
