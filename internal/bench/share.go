package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/cli"
)

// ShareOptions say what `bench share` measures.
type ShareOptions struct {
	Load         // fills the topic first
	Members  int // of the share group
	KeyOrder bool
}

// ShareResult is what a run of `bench share` showed.
type ShareResult struct {
	Topic         string  `json:"topic"`
	Group         string  `json:"group"`
	Partitions    int32   `json:"partitions"`
	Members       int     `json:"members"`
	Records       int64   `json:"records"`
	Deliveries    int64   `json:"deliveries"`
	Seconds       float64 `json:"seconds"`
	RecordsPerSec float64 `json:"records_per_second"`
}

// Share fills a topic and lets a share group accept its records one by one
// (KIP-932), as fast as it goes. It works against any broker with share groups.
func Share(ctx context.Context, g *cli.Globals, o ShareOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.Members < 1 || o.Members > 200 {
		return cli.Usagef("--members is %d: it must be 1 to 200", o.Members)
	}
	if o.Topic != "" || o.Records == 0 {
		return cli.Usagef("bench share fills a topic of its own: give --records, and no --topic")
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
	if _, err := send(ctx, g, o.Load, topic, nil); err != nil {
		return err
	}
	var tag [4]byte
	_, _ = rand.Read(tag[:]) // never fails
	r := &ShareResult{Topic: topic, Group: "daybook-bench-" + hex.EncodeToString(tag[:]), Partitions: o.Partitions, Members: o.Members}
	settings := map[string]string{"share.auto.offset.reset": "earliest"}
	if o.KeyOrder {
		settings["daybook.share.order"] = "key"
	}
	if err := setGroup(ctx, g, conn, r.Group, settings); err != nil {
		return err
	}
	if err := o.share(ctx, g, r); err != nil {
		return err
	}
	return g.Print(r, r.write)
}

// setGroup changes settings of a group.
func setGroup(ctx context.Context, g *cli.Globals, conn *cli.Conn, group string, settings map[string]string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	for name, value := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, &value
		res.Configs = append(res.Configs, c)
	}
	req.Resources = append(req.Resources, res)
	limited, cancel := g.Limit(ctx)
	defer cancel()
	resp, err := req.RequestWith(limited, conn.Client)
	if err != nil {
		return cli.Failed("set up group "+group, err)
	}
	for _, r := range resp.Resources {
		if r.ErrorCode != 0 {
			text := ""
			if r.ErrorMessage != nil {
				text = *r.ErrorMessage
			}
			return fmt.Errorf("set up group %s: code %d: %s", group, r.ErrorCode, text)
		}
	}
	return nil
}

// share runs the members until every record was accepted once.
func (o ShareOptions) share(ctx context.Context, g *cli.Globals, r *ShareResult) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var first, deliveries atomic.Int64
	errs := make([]error, o.Members)
	members := make([]*cli.Conn, o.Members)
	for i := range members {
		conn, err := g.Connect(ctx, kgo.ShareGroup(r.Group), kgo.ConsumeTopics(r.Topic))
		if err != nil {
			return err
		}
		defer conn.Close()
		members[i] = conn
	}
	var work sync.WaitGroup
	begin := time.Now()
	for i, conn := range members {
		work.Go(func() {
			for ctx.Err() == nil {
				fetches := conn.PollFetches(ctx)
				if es := fetches.Errors(); len(es) > 0 && ctx.Err() == nil {
					errs[i] = cli.Failed("read "+r.Topic, es[0].Err)
					stop()
					return
				}
				fetches.EachRecord(func(rec *kgo.Record) {
					rec.Ack(kgo.AckAccept)
					deliveries.Add(1)
					if rec.DeliveryCount() <= 1 && first.Add(1) == o.Records {
						stop()
					}
				})
			}
		})
	}
	work.Wait()
	took := time.Since(begin).Seconds()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	r.Records, r.Deliveries, r.Seconds = first.Load(), deliveries.Load(), took
	r.RecordsPerSec = float64(r.Records) / took
	if r.Records < o.Records {
		return fmt.Errorf("stopped after %d of %d records", r.Records, o.Records)
	}
	return nil
}

func (r *ShareResult) write(w io.Writer) error {
	fmt.Fprintf(w, "Shared:      %s from %s by %s, each accepted by itself\n", cli.Plural(r.Records, "record"), cli.Plural(int64(r.Partitions), "partition"), cli.Plural(int64(r.Members), "member"))
	fmt.Fprintf(w, "Throughput:  %s records/s in %.2f s, %s deliveries\n", cli.Count(int64(r.RecordsPerSec)), r.Seconds, cli.Count(r.Deliveries))
	return nil
}
