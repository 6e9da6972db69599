package daybooktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/daybook-mq/daybook/daybooktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOrdersSurviveTheBroker is what a test of an application looks like: it
// writes, the broker loses its power, and what was acknowledged is read back.
func TestOrdersSurviveTheBroker(t *testing.T) {
	broker := daybooktest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	producer := client(t, broker, kgo.AllowAutoTopicCreation())
	order := &kgo.Record{Topic: "orders", Key: []byte("k1"), Value: []byte("hello")}
	if err := producer.ProduceSync(ctx, order).FirstErr(); err != nil {
		t.Fatal(err)
	}

	broker.Kill()
	broker.Restart()

	consumer := client(t, broker, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fetches := consumer.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if got := string(fetches.Records()[0].Value); got != "hello" {
		t.Errorf("read %q", got)
	}
}

func client(t *testing.T, b *daybooktest.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Addr()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
