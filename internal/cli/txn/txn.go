// Package txn is what `daybook txn` does: listing and describing transactions,
// and finding and ending those that hang. It asks coordinators and partition
// leaders through Kafka's public requests (KIP-664); flags live in cmd/daybook.
package txn

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Summary is one transactional id in a listing.
type Summary struct {
	ID          string `json:"transactional_id"`
	ProducerID  int64  `json:"producer_id"`
	State       string `json:"state"`
	Coordinator int32  `json:"coordinator"`
}

// List prints the transactional ids there are, of the given states when any.
func List(ctx context.Context, g *cli.Globals, states []string) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	listed, err := conn.Admin.ListTransactions(ctx, nil, nil)
	if err != nil {
		return cli.Failed("list transactions", err)
	}
	out := []Summary{}
	for _, t := range listed.Sorted() {
		if len(states) == 0 || slices.ContainsFunc(states, func(s string) bool { return strings.EqualFold(s, t.State) }) {
			out = append(out, Summary{t.TxnID, t.ProducerID, t.State, t.Coordinator})
		}
	}
	return g.Print(out, func(w io.Writer) error {
		if len(out) == 0 {
			g.Note("There are no such transactional ids.")
			return nil
		}
		table := cli.NewTable("TRANSACTIONAL ID", ">PRODUCER ID", "STATE", ">COORDINATOR")
		for _, t := range out {
			table.Row(t.ID, t.ProducerID, t.State, t.Coordinator)
		}
		_, err := table.WriteTo(w)
		return err
	})
}

// Description is one transactional id in full.
type Description struct {
	Summary
	Epoch      int16   `json:"producer_epoch"`
	Timeout    float64 `json:"timeout_seconds"`
	Age        float64 `json:"age_seconds"` // of an open transaction; 0 when none is open
	Partitions []Place `json:"partitions"`  // that the open transaction has written to
}

// Place is a partition of a topic.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// Describe prints transactional ids in full.
func Describe(ctx context.Context, g *cli.Globals, ids []string) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	found, err := conn.Admin.DescribeTransactions(ctx, ids...)
	if err != nil {
		return cli.Failed("describe transactions", err)
	}
	out := []Description{}
	for _, id := range ids {
		t, ok := found[id]
		if !ok || t.Err != nil {
			return cli.Refused("transactional id "+id, t.Err, "")
		}
		d := Description{
			Summary: Summary{t.TxnID, t.ProducerID, t.State, t.Coordinator}, Epoch: t.ProducerEpoch,
			Timeout: float64(t.TimeoutMillis) / 1000, Partitions: places(t.Topics),
		}
		if t.StartTimestamp > 0 {
			d.Age = max(0, time.Since(time.UnixMilli(t.StartTimestamp)).Seconds())
		}
		out = append(out, d)
	}
	return g.Print(out, func(w io.Writer) error {
		for i, d := range out {
			if i > 0 {
				fmt.Fprintln(w)
			}
			d.write(w)
		}
		return nil
	})
}

func (d Description) write(w io.Writer) {
	fmt.Fprintf(w, "Transactional id:  %s\nState:             %s\nProducer:          id %d, epoch %d\nTimeout:           %s\n",
		d.ID, d.State, d.ProducerID, d.Epoch, cli.Brief(time.Duration(d.Timeout*float64(time.Second))))
	if d.Age > 0 {
		fmt.Fprintf(w, "Open for:          %s\n", cli.Brief(time.Duration(d.Age*float64(time.Second))))
	}
	if len(d.Partitions) > 0 {
		fmt.Fprintf(w, "Partitions:        %s\n", join(d.Partitions))
	}
}

func places(set kadm.TopicsSet) []Place {
	out := []Place{}
	for _, t := range set.Sorted() {
		for _, p := range t.Partitions {
			out = append(out, Place{t.Topic, p})
		}
	}
	return out
}

func join(ps []Place) string {
	words := make([]string, len(ps))
	for i, p := range ps {
		words[i] = fmt.Sprintf("%s-%d", p.Topic, p.Partition)
	}
	return strings.Join(words, ", ")
}
