package txn

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Open is a transaction that a partition holds open: readers of committed
// records cannot pass its first offset.
type Open struct {
	Topic            string  `json:"topic"`
	Partition        int32   `json:"partition"`
	ProducerID       int64   `json:"producer_id"`
	Epoch            int16   `json:"producer_epoch"`
	CoordinatorEpoch int32   `json:"coordinator_epoch"`
	StartOffset      int64   `json:"start_offset"`
	Idle             float64 `json:"idle_seconds"` // since its last record there
	ID               string  `json:"transactional_id,omitempty"`
	Hanging          bool    `json:"hanging"`
	Aborted          bool    `json:"aborted"`
}

// HangingOptions say where to look, and what counts as hanging.
type HangingOptions struct {
	Topics []string      // none: all
	After  time.Duration // idle for at least so long
	All    bool          // show the open ones that do not hang as well
	Abort  bool
	Yes    bool
}

// Hanging finds transactions that a partition holds open although no
// coordinator has one open for that producer, and that have been idle for some
// time. With Abort it ends them with an abort marker, after asking.
func Hanging(ctx context.Context, g *cli.Globals, o HangingOptions) error {
	if o.After < 0 {
		return cli.Usagef("--after is %s: it must not be negative", o.After)
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	open, err := findOpen(ctx, g, conn, o)
	if err != nil {
		return err
	}
	var failures []error
	if o.Abort {
		if failures, err = abort(ctx, g, conn, open, o.Yes); err != nil {
			return err
		}
	}
	err = g.Print(open, func(w io.Writer) error {
		if len(open) == 0 {
			g.Note("No transaction hangs.")
			return nil
		}
		table := cli.NewTable("TOPIC", ">PARTITION", ">PRODUCER ID", ">EPOCH", ">START", ">IDLE", "TRANSACTIONAL ID", "STATE")
		for _, t := range open {
			table.Row(t.Topic, t.Partition, t.ProducerID, t.Epoch, t.StartOffset, cli.Brief(time.Duration(t.Idle*float64(time.Second))), t.ID, t.state())
		}
		_, err := table.WriteTo(w)
		return err
	})
	return g.Finish(err, failures)
}

func (t Open) state() string {
	switch {
	case t.Aborted:
		return "aborted"
	case t.Hanging:
		return "hanging"
	}
	return "open"
}

// findOpen asks the leaders of partitions for producers with an open
// transaction, and the coordinators for those that they know of.
func findOpen(ctx context.Context, g *cli.Globals, conn *cli.Conn, o HangingOptions) ([]Open, error) {
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	details, err := conn.Topics(ctx, o.Topics...)
	if err != nil {
		return nil, err
	}
	described, err := conn.Admin.DescribeProducers(ctx, details.TopicsSet())
	if err != nil {
		return nil, cli.Failed("describe producers", err)
	}
	// The coordinators are asked last: one that ends meanwhile is not hanging.
	known, err := conn.Admin.ListTransactions(ctx, nil, nil)
	if err != nil {
		return nil, cli.Failed("list transactions", err)
	}
	byProducer := map[int64]kadm.ListedTransaction{}
	for _, t := range known {
		byProducer[t.ProducerID] = t
	}
	open := []Open{}
	for _, p := range described.SortedPartitions() {
		if p.Err != nil {
			return nil, cli.Refused(fmt.Sprintf("describe the producers of %s-%d", p.Topic, p.Partition), p.Err, p.ErrMessage)
		}
		for _, at := range p.ActiveProducers.Sorted() {
			if at.CurrentTxnStartOffset < 0 {
				continue
			}
			t := Open{
				Topic: at.Topic, Partition: at.Partition, ProducerID: at.ProducerID, Epoch: at.ProducerEpoch, CoordinatorEpoch: at.CoordinatorEpoch,
				StartOffset: at.CurrentTxnStartOffset, Idle: max(0, time.Since(time.UnixMilli(at.LastTimestamp)).Seconds()),
			}
			owner, has := byProducer[at.ProducerID]
			t.ID = owner.TxnID
			t.Hanging = (!has || !busy(owner.State)) && t.Idle >= o.After.Seconds()
			if t.Hanging || o.All {
				open = append(open, t)
			}
		}
	}
	sort.Slice(open, func(i, j int) bool {
		a, b := open[i], open[j]
		switch {
		case a.Topic != b.Topic:
			return a.Topic < b.Topic
		case a.Partition != b.Partition:
			return a.Partition < b.Partition
		}
		return a.StartOffset < b.StartOffset
	})
	return open, nil
}

// busy reports whether a coordinator in this state will yet end the transaction
// itself.
func busy(state string) bool {
	switch state {
	case "Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
		return true
	}
	return false
}

// abort writes an abort marker for each hanging transaction.
func abort(ctx context.Context, g *cli.Globals, conn *cli.Conn, open []Open, yes bool) ([]error, error) {
	hanging := 0
	for _, t := range open {
		if t.Hanging {
			hanging++
		}
	}
	if hanging == 0 {
		return nil, nil
	}
	if err := g.Confirm(ctx, yes, fmt.Sprintf("This aborts %s: their records will never be seen.", cli.Plural(int64(hanging), "transaction"))); err != nil {
		return nil, err
	}
	var failures []error
	for i, t := range open {
		if !t.Hanging {
			continue
		}
		limited, cancel := g.Limit(ctx)
		set := kadm.TopicsSet{}
		set.Add(t.Topic, t.Partition)
		answers, err := conn.Admin.WriteTxnMarkers(limited, kadm.TxnMarkers{
			ProducerID: t.ProducerID, ProducerEpoch: t.Epoch, CoordinatorEpoch: max(0, t.CoordinatorEpoch), Topics: set,
		})
		cancel()
		what := fmt.Sprintf("abort the transaction of producer %d in %s-%d", t.ProducerID, t.Topic, t.Partition)
		if err != nil {
			failures = append(failures, cli.Failed(what, err))
			continue
		}
		open[i].Aborted = true
		answers.EachPartition(func(p kadm.TxnMarkersPartitionResponse) {
			if p.Err != nil {
				open[i].Aborted = false
				failures = append(failures, cli.Refused(what, p.Err, ""))
			}
		})
	}
	return failures, nil
}
