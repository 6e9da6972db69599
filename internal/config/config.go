// Package config holds the options of `daybook serve`: one table names each
// option, its default and how it is read; flags, environment and one YAML file
// fill it in. It checks values, not the world: it opens nothing but the file.
package config

import (
	"log/slog"
	"time"
)

// Off as an address means that the front is not started.
const Off = "off"

// Config is the effective configuration. It is not changed after Load.
type Config struct {
	DataDir   string
	KafkaAddr string // host:port, or Off
	HTTPAddr  string // host:port, or Off
	Advertise string // host[:port] told to Kafka clients; empty: the address that they dialled
	AddrFile  string // where the chosen addresses are written as JSON; empty: nowhere

	Sync         Sync
	JournalCap   Size // bytes of journal that recovery may have to replay
	MemoryBudget Size // bytes of newest batches kept in memory, over all partitions
	OpenFiles    int  // data files held open at once

	NodeID            int32
	DefaultPartitions int32
	AutoCreate        bool
	AssumeReplicas    bool
	RetentionTime     time.Duration // 0: for ever
	RetentionSize     Size          // bytes per partition; 0: unlimited
	MaxMessageSize    Size          // bytes per record batch

	DebugRemote     bool
	ShutdownTimeout time.Duration
	LogLevel        slog.Level
	LogFormat       string // text or json
}

// SyncMode says when a write counts as durable.
type SyncMode string

// The sync modes, strongest first.
const (
	SyncAlways   SyncMode = "always"   // after fdatasync
	SyncInterval SyncMode = "interval" // at once; fdatasync follows within the interval
	SyncNone     SyncMode = "none"     // at once; the operating system writes when it likes
)

// Sync is a mode, with its interval.
type Sync struct {
	Mode     SyncMode
	Interval time.Duration // of SyncInterval
}

// options lists every option; the order is that of the help and of --print-config.
var options = []Option{
	opt("data", "DIR", "./daybook-data", "data directory; made if missing",
		func(c *Config) *string { return &c.DataDir }, nonEmpty),
	opt("kafka", "ADDR", "127.0.0.1:9092", "Kafka listener (host:port; port 0 picks one; off)",
		func(c *Config) *string { return &c.KafkaAddr }, address).env("KAFKA_ADDR"),
	opt("http", "ADDR", "127.0.0.1:8080", "metrics, health and debug listener (host:port; port 0 picks one; off)",
		func(c *Config) *string { return &c.HTTPAddr }, address).env("HTTP_ADDR"),
	opt("advertise", "HOST[:PORT]", "", "address told to Kafka clients; empty: the address that each client dialled",
		func(c *Config) *string { return &c.Advertise }, hostPort),
	opt("addr-file", "FILE", "", "write the chosen addresses to this file as JSON",
		func(c *Config) *string { return &c.AddrFile }, text),

	opt("sync", "MODE", "always", "when a write counts as durable: always, interval=DURATION or none",
		func(c *Config) *Sync { return &c.Sync }, syncMode),
	opt("journal-cap", "SIZE", "1GiB", "un-flushed journal that recovery may have to replay",
		func(c *Config) *Size { return &c.JournalCap }, sizeBetween(64<<20, 1<<40)),
	opt("memory-budget", "SIZE", "64MiB", "newest batches kept in memory, over all partitions",
		func(c *Config) *Size { return &c.MemoryBudget }, sizeBetween(1<<20, 1<<40)),
	opt("open-files", "N", "32", "data files held open at once",
		func(c *Config) *int { return &c.OpenFiles }, intBetween[int](8, 1<<20)),

	opt("node-id", "N", "1", "this broker's id in Kafka's metadata",
		func(c *Config) *int32 { return &c.NodeID }, intBetween[int32](0, 1<<31-1)),
	opt("default-partitions", "N", "1", "partitions of a topic that is created without a number (num.partitions)",
		func(c *Config) *int32 { return &c.DefaultPartitions }, intBetween[int32](1, 10_000)),
	opt("auto-create", "BOOL", "true", "create a topic when a client first asks for it (auto.create.topics.enable)",
		func(c *Config) *bool { return &c.AutoCreate }, boolean),
	opt("assume-replicas", "BOOL", "false", "accept a replication factor of up to 3 although there is one broker",
		func(c *Config) *bool { return &c.AssumeReplicas }, boolean),
	opt("retention-time", "DURATION", "7d", "how long topics keep records unless they say otherwise; 0: for ever (log.retention.ms)",
		func(c *Config) *time.Duration { return &c.RetentionTime }, durationFrom(0)),
	opt("retention-size", "SIZE", "0", "how much each partition keeps unless its topic says otherwise; 0: unlimited (log.retention.bytes)",
		func(c *Config) *Size { return &c.RetentionSize }, sizeBetween(0, 1<<60)),
	opt("max-message-size", "SIZE", "1048588", "largest record batch unless the topic says otherwise (message.max.bytes)",
		func(c *Config) *Size { return &c.MaxMessageSize }, sizeBetween(1<<10, 1<<30)),

	opt("debug-remote", "BOOL", "false", "serve /debug also when --http is not a loopback address",
		func(c *Config) *bool { return &c.DebugRemote }, boolean),
	opt("shutdown-timeout", "DURATION", "30s", "how long a clean stop may take",
		func(c *Config) *time.Duration { return &c.ShutdownTimeout }, durationFrom(time.Second)),
	opt("log-level", "LEVEL", "info", "debug, info, warn or error",
		func(c *Config) *slog.Level { return &c.LogLevel }, logLevel),
	opt("log-format", "FORMAT", "text", "text or json",
		func(c *Config) *string { return &c.LogFormat }, oneOf("text", "json")),
}

// Default is the configuration when nothing is said.
func Default() *Config {
	c := new(Config)
	for _, o := range options {
		if err := o.set(c, o.Default); err != nil {
			panic("config: the default of " + o.Name + ": " + err.Error())
		}
	}
	return c
}
