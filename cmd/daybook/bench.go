package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-mq/daybook/internal/bench"
	"github.com/daybook-mq/daybook/internal/cli"
)

func newBench(g *cli.Globals) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "bench",
		Short: "Measure a broker's throughput and latency, and the disk's own limit",
		Long: `Measure a broker under load, and the disk by itself. Without --topic a topic is
made for the run and deleted afterwards. MB are millions of bytes.`,
		Example: `  daybook bench produce --records 1000000 --size 1000 --partitions 16
  daybook bench produce --with-disk ./daybook-data
  daybook bench latency --rate 5000 --duration 30s --end-to-end
  daybook bench consume --records 1000000
  daybook bench disk --dir ./daybook-data --group-bytes 64KiB`,
	}, benchProduce(g), benchConsume(g), benchLatency(g), benchShare(g), benchDisk(g))
}

// bytesFlag is a flag that takes a size such as 64KiB.
type bytesFlag int64

func (b *bytesFlag) String() string { return cli.Bytes(int64(*b)) }
func (b *bytesFlag) Type() string   { return "size" }
func (b *bytesFlag) Set(s string) error {
	n, err := cli.ParseBytes(s)
	*b = bytesFlag(n)
	return err
}

func sizeFlag(f *pflag.FlagSet, name string, value int64, usage string) *int64 {
	n := value
	f.Var((*bytesFlag)(&n), name, usage)
	return &n
}

// loadFlags are those of a load; fill copies sizes once flags are parsed.
func loadFlags(c *cobra.Command, l *bench.Load, records int64, linger time.Duration) (fill func()) {
	f := c.Flags()
	f.StringVar(&l.Topic, "topic", "", "an existing topic; default one made for the run")
	f.Int32VarP(&l.Partitions, "partitions", "p", 16, "partitions of the topic made for the run")
	f.BoolVar(&l.Keep, "keep", false, "keep the topic made for the run")
	f.Int64VarP(&l.Records, "records", "n", records, "records in all; 0 goes by --duration alone")
	f.DurationVar(&l.Duration, "duration", 0, "stop after so long")
	size := sizeFlag(f, "size", 1000, "size of a value")
	f.IntVar(&l.Keys, "keys", 0, "distinct keys; 0 is none")
	f.IntVar(&l.Producers, "producers", 1, "producing clients side by side")
	f.StringVar(&l.Acks, "acks", "all", "what to wait for: all, 1, or 0 (nothing)")
	f.StringVarP(&l.Compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.BoolVar(&l.Plain, "plain", false, "producers without idempotence")
	f.BoolVar(&l.Compresses, "compressible", false, "values that compress about 4:1 instead of random ones")
	batch := sizeFlag(f, "batch-bytes", 1_000_012, "largest batch")
	f.DurationVar(&l.Linger, "linger", linger, "how long a producer gathers a batch")
	must(c.RegisterFlagCompletionFunc("topic", cobra.NoFileCompletions))
	fixed(c, "acks", "all", "1", "0")
	fixed(c, "compression", "none", "gzip", "snappy", "lz4", "zstd")
	return func() {
		l.Size, l.BatchBytes = int(min(*size, 1<<31-1)), int32(min(*batch, 1<<31-1))
	}
}

func benchProduce(g *cli.Globals) *cobra.Command {
	o := bench.ProduceOptions{}
	c := &cobra.Command{
		Use:   "produce",
		Short: "Measure how fast records are taken in",
		Long: `Send records as fast as the broker acknowledges them (or at --rate), and report
throughput and latency. Latency runs from the moment a record is handed to the
client, so that without a rate it is mostly the wait in the client's own buffer;
"bench latency" measures latency.

--with-disk DIR sets the result beside the disk's own limit: as many bytes are
appended to a pre-zeroed file in DIR and made durable by fdatasync in groups of
the size that the run showed (from the broker's metrics page).`,
		Example: `  daybook bench produce
  daybook bench produce --records 2000000 --partitions 1000 --producers 2
  daybook bench produce --with-disk ./daybook-data --metrics http://127.0.0.1:8080/metrics`,
		Args: takes(),
	}
	fill := loadFlags(c, &o.Load, 1_000_000, 5*time.Millisecond)
	f := c.Flags()
	f.Float64Var(&o.Rate, "rate", 0, "records a second in all; 0 is as fast as it goes")
	f.StringVar(&o.Disk, "with-disk", "", "measure the disk of this directory too, and print the ratio")
	f.StringVar(&o.Metrics, "metrics", cli.DefaultHTTP()+"/metrics", "the broker's metrics page (env DAYBOOK_HTTP_ADDR)")
	f.DurationVar(&o.Settle, "settle", 0, "wait so long before reading the metrics again, for work behind the scenes")
	group := sizeFlag(f, "group-bytes", 0, "bytes made durable at a time on the disk; 0 is what the run showed")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		fill()
		o.GroupBytes = *group
		return bench.Produce(cmd.Context(), g, o)
	}
	return c
}

func benchShare(g *cli.Globals) *cobra.Command {
	o := bench.ShareOptions{}
	c := &cobra.Command{
		Use:     "share",
		Short:   "Measure how fast a share group works off a topic",
		Long:    "Fill a topic and let the members of a share group (KIP-932) accept its records one\nby one. It works against any broker that has share groups.",
		Example: "  daybook bench share --records 200000 --partitions 1 --members 8\n  daybook bench share --partitions 1 --members 8 --keys 10000 --key-order",
		Args:    takes(),
	}
	fill := loadFlags(c, &o.Load, 200_000, 5*time.Millisecond)
	c.Flags().IntVar(&o.Members, "members", 8, "members of the share group")
	c.Flags().BoolVar(&o.KeyOrder, "key-order", false, "one record of a key at a time (Daybook only)")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		fill()
		return bench.Share(cmd.Context(), g, o)
	}
	return c
}

func benchConsume(g *cli.Globals) *cobra.Command {
	o := bench.ConsumeOptions{}
	c := &cobra.Command{
		Use:     "consume",
		Short:   "Measure how fast records are read",
		Long:    "Read a topic from its start to its end as fast as it goes. Without --topic one is\nfilled first, and the two rates are set side by side.",
		Example: "  daybook bench consume --records 2000000 --consumers 2\n  daybook bench consume --topic orders",
		Args:    takes(),
	}
	fill := loadFlags(c, &o.Load, 1_000_000, 5*time.Millisecond)
	f := c.Flags()
	f.IntVar(&o.Consumers, "consumers", 1, "consuming clients side by side, each with its share of the partitions")
	fetch := sizeFlag(f, "fetch-bytes", 50<<20, "largest answer to a fetch")
	part := sizeFlag(f, "partition-bytes", 4<<20, "largest share of a partition in it")
	f.DurationVar(&o.Settle, "settle", 0, "wait so long between filling and reading")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		fill()
		o.FetchBytes, o.PartBytes = int32(min(*fetch, 1<<30)), int32(min(*part, 1<<30))
		return bench.Consume(cmd.Context(), g, o)
	}
	return c
}

func benchLatency(g *cli.Globals) *cobra.Command {
	o := bench.LatencyOptions{}
	c := &cobra.Command{
		Use:   "latency",
		Short: "Measure how long a record takes at a fixed rate",
		Long: `Send records at a fixed rate, whatever the broker does: each has a due time, and
its latency runs from there. A stall counts against every record that it held up
(there is no coordinated omission).`,
		Example: `  daybook bench latency --rate 1000 --duration 30s
  daybook bench latency --rate 20000 --end-to-end --with-disk ./daybook-data`,
		Args: takes(),
	}
	fill := loadFlags(c, &o.Load, 0, 0)
	f := c.Flags()
	must(f.Lookup("duration").Value.Set("15s"))
	f.Lookup("duration").DefValue = "15s"
	f.Float64Var(&o.Rate, "rate", 1000, "records a second in all")
	f.BoolVar(&o.EndToEnd, "end-to-end", false, "measure until a consumer has the record too")
	f.StringVar(&o.Disk, "with-disk", "", "measure fdatasync on the disk of this directory too")
	group := sizeFlag(f, "group-bytes", 4096, "bytes made durable at a time on the disk")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		fill()
		o.Group = *group
		return bench.Latency(cmd.Context(), g, o)
	}
	return c
}

func benchTxn(g *cli.Globals) *cobra.Command {
	o := bench.TxnOptions{}
	c := &cobra.Command{
		Use:   "txn",
		Short: "Measure transactions that read, write and commit",
		Long: `Run read-process-write transactions: each reads records as a member of a group,
writes as many to a topic, and commits records and offsets together. Works
against any Kafka, for comparison.`,
		Example: `  daybook bench txn
  daybook bench txn --transactions 2000 --per-transaction 100 --partitions 4`,
		Args: takes(),
	}
	f := c.Flags()
	f.Int64VarP(&o.Transactions, "transactions", "n", 1000, "transactions in all")
	f.IntVar(&o.PerTransaction, "per-transaction", 100, "records in each")
	f.Int32VarP(&o.Partitions, "partitions", "p", 4, "partitions written to")
	f.IntVar(&o.Producers, "workers", 1, "members of the group, each with a transactional id")
	f.BoolVar(&o.Keep, "keep", false, "keep the topics made for the run")
	f.StringVarP(&o.Compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.DurationVar(&o.Linger, "linger", 0, "how long a producer gathers a batch")
	size := sizeFlag(f, "size", 1000, "size of a value")
	fixed(c, "compression", "none", "gzip", "snappy", "lz4", "zstd")
	o.Acks, o.BatchBytes = "all", 1_000_012
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		o.Size = int(min(*size, 1<<31-1))
		return bench.Txn(cmd.Context(), g, o)
	}
	return c
}

func benchDisk(g *cli.Globals) *cobra.Command {
	l := bench.DiskLoad{}
	c := &cobra.Command{
		Use:   "disk",
		Short: "Measure what the disk makes durable by itself",
		Long: `Append to a pre-zeroed file and fdatasync after each group of bytes, as a log
must that loses nothing. No broker is needed.`,
		Example: "  daybook bench disk --dir ./daybook-data\n  daybook bench disk --dir /var/lib/daybook --group-bytes 1MiB --bytes 2GiB",
		Args:    takes(),
	}
	f := c.Flags()
	f.StringVar(&l.Dir, "dir", ".", "directory on the disk to measure")
	total := sizeFlag(f, "bytes", 256<<20, "bytes in all")
	group := sizeFlag(f, "group-bytes", 64<<10, "bytes made durable at a time")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		l.Bytes, l.GroupBytes = *total, *group
		return bench.Disk(cmd.Context(), g, l)
	}
	return c
}
