package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/test/sim/history"
)

// hurt hurts the cluster until the round is over, and leaves it running and well.
func (w *world) hurt(rng *rand.Rand) error {
	for w.running() {
		w.pause(rng, 8*time.Second)
		if !w.running() {
			break
		}
		var err error
		switch rng.IntN(4) {
		case 0, 1:
			w.log.Info("kill")
			err = w.restart(w.cluster.Kill, rng)
		case 2:
			w.log.Info("stop")
			err = w.restart(w.cluster.Stop, rng)
		case 3:
			w.log.Info("slow disk")
			w.cluster.SlowDisk(time.Duration(rng.Int64N(int64(500 * time.Millisecond))))
			w.pause(rng, 5*time.Second)
		}
		if err != nil {
			return err
		}
	}
	w.cluster.SlowDisk(0)
	return nil
}

func (w *world) restart(end func() error, rng *rand.Rand) error {
	if err := end(); err != nil {
		return err
	}
	w.pause(rng, 3*time.Second)
	w.cluster.SlowDisk(0)
	return w.cluster.Start()
}

// finish waits until the coordinator has ended what clients left open, and notes
// what is there then.
func (w *world) finish() error {
	time.Sleep(settleTime)
	cl := w.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	adm := kadm.NewClient(cl)
	f := &w.Final
	f.Log, f.Offsets = map[history.Part][]history.Record{}, map[string]map[history.Part]int64{group: {}}
	txns, err := adm.ListTransactions(ctx, nil, []string{"Ongoing", "PrepareCommit", "PrepareAbort"})
	if err != nil {
		return err
	}
	f.Open = txns.TransactionalIDs()
	offsets, err := adm.FetchOffsets(ctx, group)
	if err != nil {
		return err
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		f.Offsets[group][history.Part{Topic: o.Topic, Index: o.Partition}] = o.At
	})
	for _, topic := range []string{topicIn, topicOut, topicTxn} {
		if err := w.finalLog(ctx, adm, topic); err != nil {
			return err
		}
	}
	return nil
}

// finalLog reads a topic to its end as read_committed sees it.
func (w *world) finalLog(ctx context.Context, adm *kadm.Client, topic string) error {
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	stable, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return err
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if lso, ok := stable.Lookup(topic, o.Partition); !ok || lso.Offset != o.Offset {
			w.Final.Open = append(w.Final.Open, fmt.Sprintf("%s-%d holds back at %d of %d", topic, o.Partition, lso.Offset, o.Offset))
		}
		if o.Offset > 0 {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().At(0), stable[topic][o.Partition].Offset
		}
	})
	cl := w.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	defer cl.Close()
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return fmt.Errorf("read %s, still to come %v: %w", topic, left, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			part := history.Part{Topic: topic, Index: r.Partition}
			if !r.Attrs.IsControl() {
				rec, err := record(r)
				if err != nil {
					rec.Value = -1
				}
				w.Final.Log[part] = append(w.Final.Log[part], rec)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return nil
}
