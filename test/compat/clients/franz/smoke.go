package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// smoker runs the everyday checks, each on topics of its own.
type smoker struct {
	brokers string
	admin   *kadm.Client
	failed  bool
}

func smoke(ctx context.Context, brokers string) error {
	cl, err := kgo.NewClient(seeds(brokers))
	if err != nil {
		return err
	}
	defer cl.Close()
	s := &smoker{brokers: brokers, admin: kadm.NewClient(cl)}
	s.check(ctx, "admin", s.adminTopics)
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		s.check(ctx, "codec "+name, func(ctx context.Context) error { return s.codec(ctx, name, codec) })
	}
	s.check(ctx, "headers", s.headers)
	s.check(ctx, "seek by time", s.seekByTime)
	s.check(ctx, "group commit", s.groupCommit)
	s.check(ctx, "delete records", s.deleteRecords)
	s.check(ctx, "static member", s.staticMember)
	s.check(ctx, "cooperative rebalance", s.cooperative)
	s.check(ctx, "transaction", s.transaction)
	if s.failed {
		return errors.New("something was not ok")
	}
	return nil
}

func (s *smoker) check(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		s.failed = true
		fmt.Printf("not ok %s: %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Println("ok " + name)
}

func (s *smoker) create(ctx context.Context, topic string, partitions int32) error {
	_, err := s.admin.CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

// send produces values in order with a client of the given options.
func (s *smoker) send(ctx context.Context, records []*kgo.Record, opts ...kgo.Opt) error {
	opts = append(opts, seeds(s.brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.ProduceSync(ctx, records...).FirstErr()
}

// take polls until count records came.
func take(ctx context.Context, cl *kgo.Client, count int) ([]*kgo.Record, error) {
	var records []*kgo.Record
	for len(records) < count {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d came: %w", len(records), count, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records, equal(len(records), count)
}

func (s *smoker) read(ctx context.Context, topic string, count int, opts ...kgo.Opt) ([]*kgo.Record, error) {
	cl, err := kgo.NewClient(append(opts, seeds(s.brokers), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return take(ctx, cl, count)
}

func equal[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func numbered(topic string, count, partitions int) []*kgo.Record {
	records := make([]*kgo.Record, count)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: fmt.Append(nil, i)}
	}
	return records
}

func (s *smoker) adminTopics(ctx context.Context) error {
	const topic = "go.admin"
	if err := s.create(ctx, topic, 2); err != nil {
		return err
	}
	added, err := s.admin.UpdatePartitions(ctx, 5, topic)
	if err := errors.Join(err, added.Error()); err != nil {
		return err
	}
	value := "3600000"
	altered, err := s.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, topic)
	if err := errors.Join(err, altered[0].Err); err != nil {
		return err
	}
	if err := eventually(ctx, value, func() (string, error) {
		configs, err := s.admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(configs[0].Configs, func(c kadm.Config) bool { return c.Key == "retention.ms" })
		if i < 0 {
			return "", errors.New("retention.ms is not described")
		}
		return configs[0].Configs[i].MaybeValue(), nil
	}); err != nil {
		return err
	}
	if err := eventually(ctx, 5, func() (int, error) {
		topics, err := s.admin.ListTopics(ctx, topic)
		return len(topics[topic].Partitions), err
	}); err != nil {
		return err
	}
	if _, err := s.admin.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	return eventually(ctx, false, func() (bool, error) {
		topics, err := s.admin.ListTopics(ctx)
		return topics.Has(topic), err
	})
}

// eventually waits, since a broker may answer before its metadata shows what it did.
func eventually[T comparable](ctx context.Context, want T, get func() (T, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		got, err := get()
		if err != nil || got == want {
			return err
		}
		select {
		case <-ctx.Done():
			return equal(got, want)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *smoker) codec(ctx context.Context, name string, codec kgo.CompressionCodec) error {
	topic := "go." + name
	if err := s.create(ctx, topic, 1); err != nil {
		return err
	}
	records := numbered(topic, 200, 1)
	for i, r := range records {
		r.Value = []byte(strings.Repeat(fmt.Sprintf("%s %d ", name, i), 20))
	}
	if err := s.send(ctx, records, kgo.ProducerBatchCompression(codec)); err != nil {
		return err
	}
	got, err := s.read(ctx, topic, len(records))
	if err != nil {
		return err
	}
	for i, r := range got {
		if err := equal(string(r.Value), string(records[i].Value)); err != nil {
			return err
		}
	}
	return nil
}

func (s *smoker) headers(ctx context.Context) error {
	const topic = "go.headers"
	if err := s.create(ctx, topic, 1); err != nil {
		return err
	}
	headers := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "empty", Value: []byte{}}, {Key: "none"}}
	if err := s.send(ctx, []*kgo.Record{{Topic: topic, Key: []byte("k"), Headers: headers}}); err != nil {
		return err
	}
	got, err := s.read(ctx, topic, 1)
	if err != nil {
		return err
	}
	return errors.Join(equal(got[0].Value == nil, true), equal(fmt.Sprintf("%q", got[0].Headers), fmt.Sprintf("%q", headers)))
}

func (s *smoker) seekByTime(ctx context.Context) error {
	const topic = "go.time"
	if err := s.create(ctx, topic, 1); err != nil {
		return err
	}
	start := time.Now().Add(-10 * time.Second)
	records := numbered(topic, 10, 1)
	for i, r := range records {
		r.Timestamp = start.Add(time.Duration(i) * time.Second)
	}
	if err := s.send(ctx, records); err != nil {
		return err
	}
	at := start.Add(4500 * time.Millisecond)
	listed, err := s.admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topic)
	if err != nil {
		return err
	}
	found, _ := listed.Lookup(topic, 0)
	cl, err := kgo.NewClient(seeds(s.brokers), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(at.UnixMilli())))
	if err != nil {
		return err
	}
	defer cl.Close()
	got, err := take(ctx, cl, 5)
	if err != nil {
		return err
	}
	return errors.Join(equal(found.Offset, 5), equal(string(got[0].Value), "5"))
}

func (s *smoker) groupCommit(ctx context.Context) error {
	const topic, group = "go.group", "go.group"
	if err := s.create(ctx, topic, 3); err != nil {
		return err
	}
	if err := s.send(ctx, numbered(topic, 30, 3)); err != nil {
		return err
	}
	first, err := kgo.NewClient(seeds(s.brokers), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	_, err = take(ctx, first, 30)
	err = errors.Join(err, first.CommitUncommittedOffsets(ctx))
	first.Close()
	if err != nil {
		return err
	}
	if err := s.send(ctx, []*kgo.Record{{Topic: topic, Partition: 1, Value: []byte("late")}}); err != nil {
		return err
	}
	got, err := s.read(ctx, topic, 1, kgo.ConsumerGroup(group), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	lags, err := s.admin.Lag(ctx, group)
	if err != nil {
		return err
	}
	lag := lags[group].Lag.Total()
	return errors.Join(equal(string(got[0].Value), "late"), equal(lag, 1))
}

func (s *smoker) deleteRecords(ctx context.Context) error {
	var offsets kadm.Offsets
	offsets.AddOffset("go.group", 0, 7, -1)
	deleted, err := s.admin.DeleteRecords(ctx, offsets)
	if err := errors.Join(err, deleted.Error()); err != nil {
		return err
	}
	starts, err := s.admin.ListStartOffsets(ctx, "go.group")
	if err != nil {
		return err
	}
	start, _ := starts.Lookup("go.group", 0)
	return equal(start.Offset, 7)
}

func (s *smoker) staticMember(ctx context.Context) error {
	const topic, group = "go.static", "go.static"
	if err := s.create(ctx, topic, 1); err != nil {
		return err
	}
	if err := s.send(ctx, numbered(topic, 1, 1)); err != nil {
		return err
	}
	var generations []int32
	for range 2 {
		cl, err := kgo.NewClient(seeds(s.brokers), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.InstanceID("one"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		if err != nil {
			return err
		}
		_, err = take(ctx, cl, 1)
		_, generation := cl.GroupMetadata()
		generations = append(generations, generation)
		cl.Close() // a static member does not leave
		if err != nil {
			return err
		}
	}
	return equal(generations[1], generations[0])
}

func (s *smoker) cooperative(ctx context.Context) error {
	const topic, group = "go.coop", "go.coop"
	if err := s.create(ctx, topic, 4); err != nil {
		return err
	}
	for i := range 2 {
		cl, err := kgo.NewClient(seeds(s.brokers), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
			kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.HeartbeatInterval(200*time.Millisecond))
		if err != nil {
			return err
		}
		defer cl.Close()
		if err := s.settled(ctx, group, i+1, 4/(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until each of the members has its share of the partitions.
func (s *smoker) settled(ctx context.Context, group string, members, share int) error {
	for {
		described, err := s.admin.DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		g := described[group]
		even := g.State == "Stable" && len(g.Members) == members
		for _, m := range g.Members {
			c, ok := m.Assigned.AsConsumer()
			even = even && ok && len(c.Topics) == 1 && len(c.Topics[0].Partitions) == share
		}
		if even {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the group did not settle: %s with %d members", g.State, len(g.Members))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *smoker) transaction(ctx context.Context) error {
	const topic = "go.txn"
	if err := s.create(ctx, topic, 1); err != nil {
		return err
	}
	cl, err := kgo.NewClient(seeds(s.brokers), kgo.TransactionalID("go.txn"), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, kept := range []bool{true, false, true} {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: fmt.Append(nil, kept)}).FirstErr(); err != nil {
			return err
		}
		if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(kept)); err != nil {
			return err
		}
	}
	got, err := s.read(ctx, topic, 2, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	return errors.Join(equal(string(got[0].Value), "true"), equal(string(got[1].Value), "true"))
}
