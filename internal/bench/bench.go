// Package bench is what `daybook bench` does: it loads a broker through a plain
// Kafka client and measures throughput and latency, and it measures what the
// disk itself can do, so that the two can be set side by side. It owns the
// meaning of its figures; flags live in cmd/daybook. It says nothing about
// correctness: that is what tests are for.
package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mrand "math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/produce"
)

// Load says what is sent, and how.
type Load struct {
	Topic       string // "": a topic of its own, deleted afterwards
	Partitions  int32  // of the topic of its own
	Keep        bool   // do not delete it
	Records     int64
	Duration    time.Duration // stop after so long; 0 is when all records are sent
	Size        int           // bytes of a value
	Keys        int           // distinct keys; 0 is none
	Producers   int           // clients side by side
	Acks        string
	Compression string
	BatchBytes  int32
	Linger      time.Duration
	Rate        float64 // records a second over all producers; 0 is as fast as it goes
	Plain       bool    // producers without idempotence
	Compresses  bool    // values that compress about 4:1 instead of random ones
}

func (l Load) validate() error {
	switch {
	case l.Records < 0 || l.Records == 0 && l.Duration == 0:
		return cli.Usagef("--records is %d: give a number of records, or --duration", l.Records)
	case l.Size < 0 || l.Size > 64<<20:
		return cli.Usagef("--size is %d: it must be 0 to 64 MiB", l.Size)
	case l.Partitions < 1:
		return cli.Usagef("--partitions is %d: it must be at least 1", l.Partitions)
	case l.Producers < 1 || l.Producers > 10_000:
		return cli.Usagef("--producers is %d: it must be 1 to 10000", l.Producers)
	case l.Rate < 0:
		return cli.Usagef("--rate is %g: it must be 0 (no limit) or more", l.Rate)
	case l.BatchBytes < 1024:
		return cli.Usagef("--batch-bytes is %d: it must be at least 1024", l.BatchBytes)
	case l.Keys < 0:
		return cli.Usagef("--keys is %d: it must be 0 (no keys) or more", l.Keys)
	}
	if _, err := produce.Codec(l.Compression); err != nil {
		return err
	}
	_, err := acks(l.Acks)
	return err
}

func acks(name string) ([]kgo.Opt, error) {
	switch name {
	case "all", "-1":
		return nil, nil
	case "1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}, nil
	case "0":
		return []kgo.Opt{kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()}, nil
	}
	return nil, cli.Usagef("--acks is %q: it must be all, 1 or 0", name)
}

// producerOptions are those of one producing client.
func (l Load) producerOptions(topic string) ([]kgo.Opt, error) {
	opts, err := acks(l.Acks)
	if err != nil {
		return nil, err
	}
	if l.Plain && len(opts) == 0 {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5))
	}
	codec, err := produce.Codec(l.Compression)
	if err != nil {
		return nil, err
	}
	return append(opts,
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(l.BatchBytes),
		kgo.ProducerLinger(l.Linger),
		kgo.MaxBufferedRecords(max(10_000, 100_000/l.Producers)),
		kgo.MaxBufferedBytes(max(8<<20, 256<<20/l.Producers)),
	), nil
}

// topic makes the topic of the load unless one is named, and gives its name and
// what undoes it.
func (l Load) topic(ctx context.Context, g *cli.Globals, conn *cli.Conn) (name string, undo func(), err error) {
	limited, cancel := g.Limit(ctx)
	defer cancel()
	if l.Topic != "" {
		_, err := conn.Topics(limited, l.Topic)
		return l.Topic, func() {}, err
	}
	var tag [4]byte
	_, _ = rand.Read(tag[:]) // never fails
	name = "daybook-bench-" + hex.EncodeToString(tag[:])
	if _, err := conn.Admin.CreateTopic(limited, l.Partitions, -1, nil, name); err != nil {
		return "", nil, cli.Refused("create topic "+name, err, "")
	}
	return name, func() {
		if l.Keep {
			g.Note("Topic %s is kept; delete it with `daybook topic delete %s --yes`.", name, name)
			return
		}
		ctx, cancel := g.Limit(context.WithoutCancel(ctx))
		defer cancel()
		if _, err := conn.Admin.DeleteTopic(ctx, name); err != nil {
			g.Note("Topic %s could not be deleted: %v", name, err)
		}
	}, nil
}

// values is a stock of payloads to send in turn; making one costs nothing.
type values struct {
	size int
	pool []byte
	keys [][]byte
}

func newValues(l Load) *values {
	v := &values{size: l.Size, pool: make([]byte, l.Size+1<<20)}
	rng := mrand.NewChaCha8([32]byte{1})
	if l.Compresses {
		for i := 0; i < len(v.pool); i += 16 { // 4 random bytes of each 16
			_, _ = rng.Read(v.pool[i:min(i+4, len(v.pool))])
		}
	} else {
		_, _ = rng.Read(v.pool)
	}
	for i := range l.Keys {
		v.keys = append(v.keys, fmt.Appendf(nil, "key-%08d", i))
	}
	return v
}

// record gives the n-th record of the load. Its value is shared and not to be
// changed.
func (v *values) record(n int64) *kgo.Record {
	at := int(n * 7919 % (1 << 20))
	r := &kgo.Record{Value: v.pool[at : at+v.size : at+v.size]}
	if len(v.keys) > 0 {
		r.Key = v.keys[n%int64(len(v.keys))]
	}
	return r
}
