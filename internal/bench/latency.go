package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// LatencyOptions say what `bench latency` measures.
type LatencyOptions struct {
	Load
	EndToEnd bool   // also until a consumer has the record
	Disk     string // directory on the broker's disk, to set the result beside fdatasync
	Group    int64  // bytes made durable at a time on the disk
}

// LatencyResult is what a run of `bench latency` showed.
type LatencyResult struct {
	Topic       string      `json:"topic"`
	RecordBytes int         `json:"record_bytes"`
	Rate        float64     `json:"rate_per_second"`
	Achieved    float64     `json:"achieved_per_second"`
	Records     int64       `json:"records"`
	Seconds     float64     `json:"seconds"`
	Acked       *Quantiles  `json:"acknowledged"`        // from the due time to the acknowledgement
	Delivered   *Quantiles  `json:"delivered,omitempty"` // from the due time to the consumer
	Disk        *DiskResult `json:"disk,omitempty"`
	RatioP99    float64     `json:"p99_ratio_to_disk,omitempty"`
}

// minStamped is the room that a due time takes in a value.
const minStamped = 8

// Latency sends at a fixed rate, whatever the broker does (open loop), and
// prints how long after its due time each record was acknowledged.
func Latency(ctx context.Context, g *cli.Globals, o LatencyOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	switch {
	case o.Rate == 0:
		return cli.Usagef("--rate is missing: latency is measured at a rate, e.g. --rate 1000")
	case o.EndToEnd && o.Size < minStamped:
		return cli.Usagef("--size is %d: --end-to-end needs at least %d bytes for the time", o.Size, minStamped)
	case o.Acks == "0":
		return cli.Usagef("--acks 0 has no acknowledgement to measure")
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
	var reader *stampReader
	var tag func(*kgo.Record, time.Time)
	if o.EndToEnd {
		if reader, err = readStamps(ctx, g, topic); err != nil {
			return err
		}
		defer reader.close()
		tag = stamp
	}
	s, err := send(ctx, g, o.Load, topic, tag)
	if err != nil {
		return err
	}
	r := &LatencyResult{
		Topic: topic, RecordBytes: o.Size, Rate: o.Rate, Records: s.acked.Load(), Seconds: s.elapsed.Seconds(),
		Achieved: float64(s.acked.Load()) / s.elapsed.Seconds(), Acked: s.latency.Quantiles(),
	}
	if reader != nil {
		if err := reader.waitFor(ctx, uint64(r.Records)); err != nil {
			return err
		}
		r.Delivered = reader.seen.Quantiles()
	}
	if o.Disk != "" {
		l := DiskLoad{Dir: o.Disk, GroupBytes: o.Group, Bytes: o.Group * 2000}
		if err := l.validate(); err != nil {
			return err
		}
		if r.Disk, err = MeasureDisk(ctx, l); err != nil {
			return err
		}
		r.RatioP99 = r.Acked.P99 / r.Disk.Sync.P99
	}
	return g.Print(r, r.write)
}

// stamp puts the due time into the head of a copy of the value.
func stamp(r *kgo.Record, due time.Time) {
	v := make([]byte, len(r.Value))
	copy(v, r.Value)
	binary.BigEndian.PutUint64(v, uint64(due.UnixNano()))
	r.Value = v
}

// stampReader consumes a topic from its end and measures how old the stamps are.
type stampReader struct {
	conn *cli.Conn
	seen Histogram
	done chan struct{}
	stop context.CancelFunc
}

func readStamps(ctx context.Context, g *cli.Globals, topic string) (*stampReader, error) {
	limited, cancel := g.Limit(ctx)
	defer cancel()
	admin, err := g.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	spans, err := cli.ListSpans(limited, admin.Admin, topic)
	if err != nil {
		return nil, err
	}
	// From fixed offsets, so that no record sent from now on can be missed.
	starts := map[int32]kgo.Offset{}
	for p, s := range spans[topic] {
		starts[p] = kgo.NewOffset().At(s.End)
	}
	conn, err := g.Connect(ctx, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}), kgo.FetchMinBytes(1))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	r := &stampReader{conn: conn, done: make(chan struct{}), stop: stop}
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			r.conn.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
				if len(rec.Value) >= minStamped {
					r.seen.Record(time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(rec.Value)))))
				}
			})
		}
	}()
	return r, nil
}

// waitFor waits until n records have been read.
func (r *stampReader) waitFor(ctx context.Context, n uint64) error {
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.seen.count.Load() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the consumer has %d of %d records after 30s more", r.seen.count.Load(), n)
		case <-tick.C:
		}
	}
	return nil
}

func (r *stampReader) close() {
	r.stop()
	<-r.done
	r.conn.Close()
}

func (r *LatencyResult) write(w io.Writer) error {
	fmt.Fprintf(w, "Sent:        %s of %s at %s records/s (asked for %s)\n",
		cli.Plural(r.Records, "record"), cli.Bytes(int64(r.RecordBytes)), cli.Count(int64(r.Achieved)), cli.Count(int64(r.Rate)))
	fmt.Fprintf(w, "Acked:       %s (from the due time)\n", r.Acked)
	if r.Delivered != nil {
		fmt.Fprintf(w, "Delivered:   %s (from the due time)\n", r.Delivered)
	}
	if r.Disk != nil {
		if err := r.Disk.write(w); err != nil {
			return err
		}
		fmt.Fprintf(w, "Ratio:       p99 is %.1f times the disk's fdatasync p99\n", r.RatioP99)
	}
	return nil
}
