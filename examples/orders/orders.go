// Package orders makes the orders that the examples process.
package orders

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topic holds the orders: customer → amount.
const Topic = "orders"

// Ensure makes sure that the topic holds at least n orders.
func Ensure(ctx context.Context, broker string, n int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(Topic))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if resp, err := admin.CreateTopics(ctx, 3, -1, nil, Topic); err != nil {
		return fmt.Errorf("create topic %s: %w", Topic, err)
	} else if r := resp[Topic]; r.Err != nil && r.ErrMessage == "" {
		return fmt.Errorf("create topic %s: %w", Topic, r.Err)
	}
	ends, err := admin.ListEndOffsets(ctx, Topic)
	if err != nil {
		return err
	}
	have := int64(0)
	ends.Each(func(o kadm.ListedOffset) { have += o.Offset })
	for i := have; i < int64(n); i++ {
		r := &kgo.Record{Key: fmt.Appendf(nil, "customer-%d", i%7), Value: fmt.Appendf(nil, "%d.00", 1+i%90)}
		client.Produce(ctx, r, nil)
	}
	return client.Flush(ctx)
}
