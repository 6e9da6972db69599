package bench

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// ConsumeOptions say what `bench consume` measures.
type ConsumeOptions struct {
	Load                     // fills the topic first, when it has one of its own
	Consumers  int           // clients side by side, each with its share of the partitions
	FetchBytes int32         // of one answer
	PartBytes  int32         // of one partition in an answer
	Settle     time.Duration // between filling and reading
}

// ConsumeResult is what a run of `bench consume` showed.
type ConsumeResult struct {
	Topic         string         `json:"topic"`
	Partitions    int            `json:"partitions"`
	Consumers     int            `json:"consumers"`
	Records       int64          `json:"records"`
	Bytes         int64          `json:"bytes"`
	Seconds       float64        `json:"seconds"`
	RecordsPerSec float64        `json:"records_per_second"`
	MBPerSec      float64        `json:"mb_per_second"`
	Produced      *ProduceResult `json:"produced,omitempty"`
	Ratio         float64        `json:"ratio_to_produced,omitempty"`
}

// Consume reads a topic from its start to its end as fast as it goes. Without a
// topic it fills one of its own first, and says how much faster reading was.
func Consume(ctx context.Context, g *cli.Globals, o ConsumeOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.Consumers < 1 || o.Consumers > 10_000 {
		return cli.Usagef("--consumers is %d: it must be 1 to 10000", o.Consumers)
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
	r := &ConsumeResult{Topic: topic, Consumers: o.Consumers}
	if o.Topic == "" {
		s, err := send(ctx, g, o.Load, topic, nil)
		if err != nil {
			return err
		}
		r.Produced = s.result(o.Load, topic)
		wait(ctx, o.Settle)
	}
	limited, cancel := g.Limit(ctx)
	spans, err := cli.ListSpans(limited, conn.Admin, topic)
	cancel()
	if err != nil {
		return err
	}
	if err := o.read(ctx, g, topic, spans[topic], r); err != nil {
		return err
	}
	if r.Produced != nil {
		r.Produced.Partitions = r.Partitions
		r.Ratio = r.MBPerSec / r.Produced.MBPerSec
	}
	return g.Print(r, r.write)
}

// read consumes spans with o.Consumers clients.
func (o ConsumeOptions) read(ctx context.Context, g *cli.Globals, topic string, spans map[int32]cli.Span, r *ConsumeResult) error {
	shares := make([]map[int32]cli.Span, o.Consumers)
	i := 0
	for p, s := range spans {
		if s.Records() > 0 {
			if shares[i%o.Consumers] == nil {
				shares[i%o.Consumers] = map[int32]cli.Span{}
			}
			shares[i%o.Consumers][p] = s
			i++
		}
	}
	var records, bytes atomic.Int64
	var work sync.WaitGroup
	errs := make([]error, o.Consumers)
	begin := time.Now()
	for i, share := range shares {
		if len(share) == 0 {
			continue
		}
		work.Go(func() { errs[i] = o.readShare(ctx, g, topic, share, &records, &bytes) })
	}
	work.Wait()
	took := time.Since(begin).Seconds()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	r.Partitions, r.Records, r.Bytes, r.Seconds = len(spans), records.Load(), bytes.Load(), took
	r.RecordsPerSec, r.MBPerSec = float64(r.Records)/took, float64(r.Bytes)/1e6/took
	return nil
}

func (o ConsumeOptions) readShare(ctx context.Context, g *cli.Globals, topic string, share map[int32]cli.Span, records, bytes *atomic.Int64) error {
	starts := map[int32]kgo.Offset{}
	for p, s := range share {
		starts[p] = kgo.NewOffset().At(s.Start)
	}
	conn, err := g.Connect(ctx,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
		kgo.FetchMaxBytes(o.FetchBytes), kgo.FetchMaxPartitionBytes(o.PartBytes), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer conn.Close()
	left := len(share)
	for left > 0 {
		poll, cancel := context.WithTimeout(ctx, g.Timeout)
		fetches := conn.PollFetches(poll)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fetches.Err0(); err != nil {
			return cli.Failed(fmt.Sprintf("read %s, with %d partitions left", topic, left), err)
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return cli.Failed("read "+topic, errs[0].Err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			n := len(p.Records)
			if n == 0 {
				return
			}
			var sum int64
			for _, rec := range p.Records {
				sum += int64(len(rec.Key) + len(rec.Value))
			}
			records.Add(int64(n))
			bytes.Add(sum)
			if s := share[p.Partition]; p.Records[n-1].Offset+1 >= s.End && p.Records[0].Offset < s.End {
				left--
			}
		})
	}
	return nil
}

func (r *ConsumeResult) write(w io.Writer) error {
	if r.Produced != nil {
		if err := r.Produced.write(w); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "Consumed:    %s from %s by %s\n", cli.Plural(r.Records, "record"), cli.Plural(int64(r.Partitions), "partition"), cli.Plural(int64(r.Consumers), "consumer"))
	fmt.Fprintf(w, "Throughput:  %s records/s, %.1f MB/s in %.2f s\n", cli.Count(int64(r.RecordsPerSec)), r.MBPerSec, r.Seconds)
	if r.Ratio > 0 {
		fmt.Fprintf(w, "Ratio:       %.1f times the rate of producing\n", r.Ratio)
	}
	return nil
}
