// Atmostonce commits its position before it processes what it read: a crash in
// between loses those orders and repeats none.
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
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup("at-most-once"), kgo.ConsumeTopics(orders.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	for done := 0; done < n; {
		fetches := client.PollRecords(ctx, n-done)
		if err := fetches.Err(); err != nil {
			return err
		}
		records := fetches.Records()
		// First the commit: from here on these orders will not come again.
		if err := client.CommitRecords(ctx, records...); err != nil {
			return err
		}
		for _, r := range records {
			fmt.Printf("charged %s for %s\n", r.Value, r.Key)
			done++
		}
	}
	return nil
}
