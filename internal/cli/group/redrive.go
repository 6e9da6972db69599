package group

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// The headers that say where a dead letter came from (KIP-1191).
const (
	dlqTopic     = "__dlq.errors.topic"
	dlqPartition = "__dlq.errors.partition"
	dlqOffset    = "__dlq.errors.offset"
	dlqGroup     = "__dlq.errors.group"
)

// redriveBatch bounds the offsets of one call to the broker.
const redriveBatch = 10_000

// Redriven is what a redrive did, or would do, for one partition of a source topic.
type Redriven struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Letters   int64  `json:"dead_letters"`
	Reopened  int64  `json:"reopened"`
}

// Redrive reads a dead-letter topic to its end and makes the records that its
// letters of this share group name ready again, for the group alone and in their
// old place. Without execute it only counts.
func Redrive(ctx context.Context, g *cli.Globals, base, group, from string, execute bool) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	letters, err := deadLetters(ctx, g, conn, group, from)
	if err != nil {
		return err
	}
	out := []Redriven{}
	for part, offsets := range letters {
		r := Redriven{Topic: part.topic, Partition: part.index, Letters: int64(len(offsets))}
		for len(offsets) > 0 && execute {
			n := min(redriveBatch, len(offsets))
			got, err := reopen(ctx, base, group, part, offsets[:n])
			if err != nil {
				return err
			}
			r.Reopened += got
			offsets = offsets[n:]
		}
		out = append(out, r)
	}
	return g.Print(out, func(w io.Writer) error {
		table := cli.NewTable("TOPIC", ">PARTITION", ">DEAD LETTERS", ">REOPENED")
		for _, r := range out {
			table.Row(r.Topic, r.Partition, r.Letters, r.Reopened)
		}
		if _, err := table.WriteTo(w); err != nil {
			return err
		}
		if !execute {
			g.Note("Nothing was changed; --execute does it.")
		}
		return nil
	})
}

type sourcePart struct {
	topic string
	index int32
}

// deadLetters reads where the group's dead letters came from.
func deadLetters(ctx context.Context, g *cli.Globals, conn *cli.Conn, group, from string) (map[sourcePart][]int64, error) {
	limited, cancel := g.Limit(ctx)
	spans, err := cli.ListSpans(limited, conn.Admin, from)
	cancel()
	if err != nil {
		return nil, err
	}
	starts, left := map[int32]kgo.Offset{}, map[int32]int64{}
	for p, s := range spans[from] {
		if s.Records() > 0 {
			starts[p], left[p] = kgo.NewOffset().At(s.Start), s.End
		}
	}
	out := map[sourcePart][]int64{}
	if len(left) == 0 {
		return out, nil
	}
	reader, err := g.Connect(ctx, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{from: starts}), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	for len(left) > 0 {
		poll, cancel := context.WithTimeout(ctx, g.Timeout)
		fetches := reader.PollFetches(poll)
		cancel()
		if err := fetches.Err(); err != nil {
			return nil, cli.Failed("read "+from, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if part, o, ok := source(r, group); ok {
				out[part] = append(out[part], o)
			}
		})
	}
	return out, nil
}

func source(r *kgo.Record, group string) (part sourcePart, offset int64, ok bool) {
	h := map[string]string{}
	for _, x := range r.Headers {
		h[x.Key] = string(x.Value)
	}
	index, err1 := strconv.ParseInt(h[dlqPartition], 10, 32)
	offset, err2 := strconv.ParseInt(h[dlqOffset], 10, 64)
	return sourcePart{h[dlqTopic], int32(index)}, offset, h[dlqGroup] == group && err1 == nil && err2 == nil
}

func reopen(ctx context.Context, base, group string, part sourcePart, offsets []int64) (int64, error) {
	var out struct {
		Reopened int64 `json:"reopened"`
	}
	in := map[string]any{"topic": part.topic, "partition": part.index, "offsets": offsets}
	err := call(ctx, base, group, "redrive", in, &out)
	return out.Reopened, err
}

// Unpark opens every key of a share group that a dead record closed.
func Unpark(ctx context.Context, g *cli.Globals, base, group string) error {
	var out struct {
		Keys int64 `json:"keys"`
	}
	if err := call(ctx, base, group, "unpark", struct{}{}, &out); err != nil {
		return err
	}
	return g.Print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Opened %s.\n", cli.Plural(out.Keys, "key"))
		return err
	})
}

// call posts an action for a share group to the broker's HTTP address.
func call(ctx context.Context, base, group, action string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/share-groups/"+url.PathEscape(group)+"/"+action, bytes.NewReader(body))
	if err != nil {
		return cli.Usagef("--http %s: %v", base, err)
	}
	req.Header.Set("Content-Type", "application/json")
	return getJSON(req, group, out)
}
