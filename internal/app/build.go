package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/daybook-mq/daybook/internal/cluster"
	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/producerids"
	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka"
	"github.com/daybook-mq/daybook/internal/storage/journal"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// build makes the parts from the store up, each on the ones before it.
func (b *Broker) build(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		b.openStore, b.openCatalogue, b.openGroups, b.openTxns, b.openShares, b.openProbe,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) openStore(ctx context.Context) error {
	c := b.o.Config
	if _, _, err := checkMeta(b.o.FS, c.DataDir, c.NodeID); err != nil {
		return err
	}
	store, err := partlog.Open(ctx, partlog.Options{
		FS: b.o.FS, Dir: c.DataDir,
		JournalCap: int64(c.JournalCap), MemoryBudget: int64(c.MemoryBudget), OpenFiles: c.OpenFiles,
		JournalFileSize: b.o.JournalFileSize,
		Sync:            syncMode(c.Sync), Clock: b.o.Now, Logger: b.log, OnFatal: b.fail,
	})
	if err != nil {
		return openError(c.DataDir, err)
	}
	b.store = store
	b.onStop("store", func(context.Context) error { return store.Close() })
	b.meta, err = ensureMeta(b.o.FS, c.DataDir, c.NodeID, b.o.Now())
	return err
}

func (b *Broker) openCatalogue(ctx context.Context) (err error) {
	b.topics, err = topics.Open(ctx, topics.Options{Store: b.store, Now: b.o.Now, Static: b.brokerSettings()})
	return err
}

// openGroups opens the group coordinator over __consumer_offsets.
func (b *Broker) openGroups(ctx context.Context) (err error) {
	b.groups, err = groups.Open(ctx, b.topics, groups.Options{Now: b.o.Now, Log: b.log})
	if err != nil {
		return err
	}
	b.onStop("groups", func(context.Context) error { b.groups.Stop(); return nil })
	return nil
}

// openTxns opens the transaction coordinator over __transaction_state.
func (b *Broker) openTxns(ctx context.Context) error {
	ids, err := producerids.Open(ctx, b.store, b.o.Now)
	if err != nil {
		return err
	}
	b.txns, err = txn.Open(ctx, b.topics, txn.Options{IDs: ids, Ended: b.txnEnded, Now: b.o.Now, Log: b.log})
	if err != nil {
		return err
	}
	b.onStop("transactions", func(context.Context) error { b.txns.Close(); return nil })
	return nil
}

// openShares opens the ledgers and the coordinator of share groups over them.
func (b *Broker) openShares(ctx context.Context) error {
	keeper, err := ledgers.Open(ctx, ledgers.Options{Topics: b.topics, Now: b.o.Now, Logger: b.log})
	if err != nil {
		return err
	}
	b.onStop("ledgers", func(context.Context) error { keeper.Close(); return nil })
	b.shares = sharegroups.Open(ctx, sharegroups.Options{Topics: b.topics, Ledgers: keeper, Taken: b.groups.Exists, Now: b.o.Now, Log: b.log})
	b.onStop("share groups", func(context.Context) error { b.shares.Close(); return nil })
	return nil
}

// txnEnded lets offsets count, or drops them, that were committed in a transaction.
func (b *Broker) txnEnded(e txn.Ended) {
	if e.Topic == groups.OffsetsTopic {
		b.groups.EndTxn(e.Index, groups.Producer{ID: e.ProducerID, Epoch: e.Epoch}, e.Commit)
	}
}

// resolve finds a partition by topic name and index.
func (b *Broker) resolve(topic string, index int32) (*partition.Partition, bool) {
	t, ok := b.topics.ByName(topic)
	if !ok || index < 0 || int(index) >= len(t.Partitions) {
		return nil, false
	}
	return t.Partitions[index], true
}

// startKafka serves the Kafka protocol on l.
func (b *Broker) startKafka(l net.Listener) error {
	front, err := kafka.New(kafka.Options{
		Cluster: cluster.Solo{ClusterID: b.meta.ClusterID, NodeID: b.meta.NodeID}, Advertise: b.advertised(l.Addr()),
		Topics: b.topics, Groups: b.groups, Txns: b.txns, Shares: b.shares, AssumeReplicas: b.o.Config.AssumeReplicas,
		LogDir: b.o.Config.DataDir, Space: b.space, Now: b.o.Now, Log: b.log,
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	b.kafka = front
	b.running.Go(func() {
		if err := front.Serve(l); !errors.Is(err, net.ErrClosed) {
			b.fail(fmt.Errorf("the Kafka listener ended: %w", err))
		}
	})
	// The front answers what was begun before it ends; joins that wait for a
	// rebalance would keep it, so the groups answer those first.
	b.onStop("kafka front", func(ctx context.Context) error {
		b.groups.Stop()
		err := front.Close(ctx)
		b.running.Wait()
		return err
	})
	return nil
}

// space is the room on the data directory's file system, in bytes; -1 if unknown.
func (b *Broker) space() (total, usable int64) {
	s, err := b.o.FS.Space(b.o.Config.DataDir)
	if err != nil {
		return -1, -1
	}
	return int64(s.Total), int64(s.Free)
}

// advertised is what clients are told: the configured address, with the
// listener's port unless it names one.
func (b *Broker) advertised(l net.Addr) string {
	a := b.o.Config.Advertise
	if a == "" {
		return ""
	}
	if _, _, err := net.SplitHostPort(a); err == nil {
		return a
	}
	_, port, _ := net.SplitHostPort(l.String())
	return net.JoinHostPort(config.Unbracket(a), port)
}

// brokerSettings are the options as Kafka's broker settings, as far as they differ
// from the defaults, and what describes this broker.
func (b *Broker) brokerSettings() map[string]string {
	c, def := b.o.Config, config.Default()
	node := strconv.Itoa(int(c.NodeID))
	s := map[string]string{
		"node.id": node, "broker.id": node, "log.dirs": c.DataDir,
		"listeners": "PLAINTEXT://" + b.addrs.Kafka,
	}
	set := func(differs bool, key, value string) {
		if differs {
			s[key] = value
		}
	}
	set(c.Advertise != "", "advertised.listeners", "PLAINTEXT://"+c.Advertise)
	set(c.DefaultPartitions != def.DefaultPartitions, "num.partitions", strconv.Itoa(int(c.DefaultPartitions)))
	set(c.AutoCreate != def.AutoCreate, "auto.create.topics.enable", strconv.FormatBool(c.AutoCreate))
	set(c.MaxMessageSize != def.MaxMessageSize, "message.max.bytes", strconv.FormatInt(int64(c.MaxMessageSize), 10))
	set(c.RetentionTime != def.RetentionTime, "log.retention.ms", orUnlimited(c.RetentionTime.Milliseconds()))
	set(c.RetentionSize != def.RetentionSize, "log.retention.bytes", orUnlimited(int64(c.RetentionSize)))
	return s
}

// syncMode is the journal's form of the option.
func syncMode(s config.Sync) journal.SyncMode {
	switch s.Mode {
	case config.SyncInterval:
		return journal.SyncMode(s.Interval)
	case config.SyncNone:
		return journal.SyncNone
	default:
		return journal.SyncAlways
	}
}

// orUnlimited is Kafka's spelling: -1 where Daybook's options say 0.
func orUnlimited(n int64) string {
	if n == 0 {
		return "-1"
	}
	return strconv.FormatInt(n, 10)
}
