// Exactlyonce reads orders, writes a charge for each, and commits its position, all
// in one transaction: whatever crashes, consumers that read committed see each
// charge once.
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
	id := flag.String("id", "charger-1", "this instance's transactional id: each instance has its own and keeps it")
	flag.Parse()
	if err := run(context.Background(), *broker, *id, *n); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, broker, id string, n int) error {
	if err := orders.Ensure(ctx, broker, n); err != nil {
		return err
	}
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(broker), kgo.TransactionalID(id),
		kgo.ConsumerGroup("exactly-once"), kgo.ConsumeTopics(orders.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("charges"))
	if err != nil {
		return err
	}
	defer session.Close()
	for done := 0; done < n; {
		fetches := session.PollRecords(ctx, n-done)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		records := fetches.Records()
		promise := kgo.AbortingFirstErrPromise(session.Client())
		for _, r := range records {
			session.Produce(ctx, &kgo.Record{Key: r.Key, Value: append([]byte("charged "), r.Value...)}, promise.Promise())
		}
		// The position is committed with the charges, or neither is.
		committed, err := session.End(ctx, promise.Err() == nil)
		if err != nil {
			return err
		}
		if committed {
			done += len(records)
			fmt.Printf("%d orders charged\n", done)
		}
	}
	return nil
}
