package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// ProduceOptions say what `bench produce` measures.
type ProduceOptions struct {
	Load
	Metrics    string // URL of the broker's metrics page, "" for none
	Disk       string // directory on the broker's disk to measure as well, "" for none
	GroupBytes int64  // for the disk; 0 takes what the run showed
	Settle     time.Duration
}

// ProduceResult is what a run of `bench produce` showed. MB are millions of
// bytes of keys and values.
type ProduceResult struct {
	Topic         string     `json:"topic"`
	Partitions    int        `json:"partitions"`
	Producers     int        `json:"producers"`
	Acks          string     `json:"acks"`
	Compression   string     `json:"compression"`
	RecordBytes   int        `json:"record_bytes"`
	Records       int64      `json:"records"`
	Bytes         int64      `json:"bytes"`
	Seconds       float64    `json:"seconds"`
	RecordsPerSec float64    `json:"records_per_second"`
	MBPerSec      float64    `json:"mb_per_second"`
	Latency       *Quantiles `json:"latency"`            // from the hand-over to the client to the acknowledgement
	ClientCPU     float64    `json:"client_cpu_seconds"` // processor time of this command; 0 when not told

	Broker *BrokerUse  `json:"broker,omitempty"`
	Disk   *DiskResult `json:"disk,omitempty"`
	Ratio  float64     `json:"ratio_to_disk,omitempty"`
}

// BrokerUse is how the broker used its disk during a run, from its metrics page.
type BrokerUse struct {
	Syncs         int64   `json:"syncs"`
	DataBytes     int64   `json:"data_bytes"`     // of batches, compressed as they came
	BytesPerSync  int64   `json:"bytes_per_sync"` // of batches
	WrittenBytes  int64   `json:"written_bytes"`  // to journal files, zeros ahead included, and to segments
	Amplification float64 `json:"written_per_data_byte"`
	CPU           float64 `json:"cpu_seconds"` // processor time of the broker
}

// Produce sends a load as fast as it goes (or at its rate) and prints what came
// of it; with a disk, it then makes the disk durable in the same way and sets
// the two side by side.
func Produce(ctx context.Context, g *cli.Globals, o ProduceOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	topic, undo, err := o.topic(ctx, g, conn)
	if err != nil {
		return err
	}
	defer undo()
	before, metricsErr := o.metrics(ctx)
	cpu := cpuTime()
	s, err := send(ctx, g, o.Load, topic, nil)
	if err != nil {
		return err
	}
	r := s.result(o.Load, topic)
	r.ClientCPU = (cpuTime() - cpu).Seconds()
	if details, err := conn.Topics(ctx, topic); err == nil {
		r.Partitions = len(details[topic].Partitions)
	}
	if metricsErr == nil && before != nil {
		if o.Settle > 0 {
			wait(ctx, o.Settle)
		}
		if after, err := o.metrics(ctx); err == nil {
			r.Broker = use(before, after)
		}
	}
	if o.Disk != "" {
		if err := o.measureDisk(ctx, r, metricsErr); err != nil {
			return err
		}
	}
	return g.Print(r, r.write)
}

// The counters of a Daybook broker that tell how it used its disk.
const (
	metricSyncs    = "daybook_journal_sync_seconds_count"
	metricData     = "daybook_journal_data_bytes_total"
	metricWritten  = "daybook_journal_written_bytes_total"
	metricSegments = "daybook_segment_written_bytes_total"
	metricCPU      = "process_cpu_seconds_total"
)

// metrics reads the broker's counters; nil when no page is named.
func (o ProduceOptions) metrics(ctx context.Context) (cli.Metrics, error) {
	if o.Metrics == "" {
		return nil, nil
	}
	m, _, err := cli.ReadMetrics(ctx, o.Metrics)
	if err == nil && !m.Has(metricSyncs) {
		err = fmt.Errorf("%s is not the page of a Daybook broker", o.Metrics)
	}
	return m, err
}

func (s *sent) result(l Load, topic string) *ProduceResult {
	secs := s.elapsed.Seconds()
	return &ProduceResult{
		Topic: topic, Producers: l.Producers, Acks: l.Acks, Compression: l.Compression, RecordBytes: l.Size,
		Records: s.acked.Load(), Bytes: s.bytes.Load(), Seconds: secs,
		RecordsPerSec: float64(s.acked.Load()) / secs, MBPerSec: float64(s.bytes.Load()) / 1e6 / secs,
		Latency: s.latency.Quantiles(),
	}
}

func use(before, after cli.Metrics) *BrokerUse {
	delta := func(name string) int64 { return int64(after[name] - before[name]) }
	u := &BrokerUse{Syncs: delta(metricSyncs), DataBytes: delta(metricData), WrittenBytes: delta(metricWritten) + delta(metricSegments)}
	u.CPU = after[metricCPU] - before[metricCPU]
	if u.Syncs > 0 {
		u.BytesPerSync = u.DataBytes / u.Syncs
	}
	if u.DataBytes > 0 {
		u.Amplification = float64(u.WrittenBytes) / float64(u.DataBytes)
	}
	return u
}

// measureDisk writes as many bytes as the run made durable, in groups of the
// size that the run showed.
func (o ProduceOptions) measureDisk(ctx context.Context, r *ProduceResult, metricsErr error) error {
	l := DiskLoad{Dir: o.Disk, Bytes: r.Bytes, GroupBytes: o.GroupBytes}
	if l.GroupBytes == 0 {
		if r.Broker == nil || r.Broker.BytesPerSync == 0 {
			why := "there is no metrics page"
			if metricsErr != nil {
				why = metricsErr.Error()
			}
			return cli.Hintf(fmt.Errorf("the size of the broker's groups is not known: %s", why),
				"Give --metrics URL, or the size with --group-bytes.")
		}
		l.GroupBytes = min(r.Broker.BytesPerSync, diskFileBytes)
		l.Bytes = r.Broker.DataBytes
	}
	l.Bytes = max(l.Bytes, l.GroupBytes)
	if err := l.validate(); err != nil {
		return err
	}
	d, err := MeasureDisk(ctx, l)
	if err != nil {
		return err
	}
	r.Disk = d
	// Both in bytes that were made durable a second: compressed, when they were.
	durable := r.MBPerSec
	if r.Broker != nil {
		durable = float64(r.Broker.DataBytes) / 1e6 / r.Seconds
	}
	r.Ratio = durable / d.MBPerSec
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *ProduceResult) write(w io.Writer) error {
	fmt.Fprintf(w, "Produced:    %s of %s to %s, %s, acks %s, compression %s\n",
		cli.Plural(r.Records, "record"), cli.Bytes(int64(r.RecordBytes)), cli.Plural(int64(r.Partitions), "partition"), cli.Plural(int64(r.Producers), "producer"), r.Acks, r.Compression)
	fmt.Fprintf(w, "Throughput:  %s records/s, %.1f MB/s in %.2f s\n", cli.Count(int64(r.RecordsPerSec)), r.MBPerSec, r.Seconds)
	fmt.Fprintf(w, "Latency:     %s (from the hand-over to the client)\n", r.Latency)
	if r.Broker != nil {
		fmt.Fprintf(w, "Broker:      %s, %s each; %.2f bytes written for each byte of data\n",
			cli.Plural(r.Broker.Syncs, "fdatasync"), cli.Bytes(r.Broker.BytesPerSync), r.Broker.Amplification)
		fmt.Fprintf(w, "Processor:   broker %.2f s, client %.2f s, of %d x %.2f s\n", r.Broker.CPU, r.ClientCPU, runtime.NumCPU(), r.Seconds)
	}
	if r.Disk != nil {
		if err := r.Disk.write(w); err != nil {
			return err
		}
		fmt.Fprintf(w, "Ratio:       %.0f %% of the disk's own limit\n", 100*r.Ratio)
	}
	return nil
}

// String is one line for a person.
func (q *Quantiles) String() string {
	return fmt.Sprintf("p50 %.2f ms, p90 %.2f, p99 %.2f, p99.9 %.2f, max %.2f", q.P50, q.P90, q.P99, q.P999, q.Max)
}
