package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "the seed; 0 draws one")
	roundsFlag = flag.Int("rounds", 4, "how often the broker is killed")
)

const (
	topic      = "crash"
	partitions = 8
	producers  = 3
	keys       = 20 // of each producer
	// patience bounds what a client waits for a broker that runs.
	patience = 30 * time.Second
)

// run is a test under way.
type run struct {
	*testing.T
	b         *broker
	rng       *rand.Rand
	ledger    *Ledger
	from      [partitions]int64 // what is below was checked after an earlier round
	seq       [producers][keys]uint64
	mayLose   bool
	lost      int
	inStart   int
	mu        sync.Mutex // over ledger and ackFaults while producers run
	ackFaults []error
}

func newRun(t *testing.T, mayLose bool, args ...string) *run {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again: go test ./test/crash -count=1 -run '^%s$' -rounds=%d -seed=%d", t.Name(), *roundsFlag, seed)
		}
	})
	// A small memory tail makes the broker write segments while it is killed.
	return &run{
		T: t, b: newBroker(t, append(args, "--memory-budget", "1MiB")...), mayLose: mayLose,
		rng: rand.New(rand.NewPCG(seed, 0)), ledger: NewLedger(partitions),
	}
}

// TestKill: with --sync=always nothing acknowledged is lost, altered or moved.
func TestKill(t *testing.T) { newRun(t, false).rounds() }

// TestKillInterval: with --sync=interval the tail may go, and only the tail: what
// remains of each partition is what was there, from its start, without a gap. After
// kill -9 the operating system still has what was written, so little goes.
func TestKillInterval(t *testing.T) { newRun(t, true, "--sync", "interval=200ms").rounds() }

func (r *run) rounds() {
	if err := r.b.start(); err != nil {
		r.Fatal(err)
	}
	r.createTopic()
	begin := time.Now()
	for i := range *roundsFlag {
		r.load()
		if err := r.restart(); err != nil {
			r.Fatal(err)
		}
		if i == *roundsFlag-1 {
			r.from = [partitions]int64{} // all of it once more
		}
		r.check()
		if r.Failed() {
			r.Fatalf("after kill %d", i+1)
		}
	}
	r.Logf("%d kills, %d of a broker that was starting: %d records acknowledged, %d taken back, in %.1f s",
		*roundsFlag+r.inStart, r.inStart, r.ledger.Len()+r.lost, r.lost, time.Since(begin).Seconds())
	if r.ledger.Len() == 0 {
		r.Error("nothing was acknowledged")
	}
	if r.lost > 0 && !r.mayLose {
		r.Error("acknowledged records were taken back")
	}
}

func (r *run) createTopic() {
	cl := r.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		r.Fatal(err)
	}
}

func (r *run) client(opts ...kgo.Opt) *kgo.Client {
	r.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(r.b.addr))...)
	if err != nil {
		r.Fatal(err)
	}
	return cl
}

// load produces until the broker is killed, at a random moment.
func (r *run) load() {
	var work sync.WaitGroup
	var acks atomic.Int64
	moment := time.Duration(r.rng.Int64N(int64(400 * time.Millisecond)))
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	for p := range producers {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), uint64(p)))
		cl := r.client(kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5), kgo.RequiredAcks(kgo.AllISRAcks()),
			kgo.RecordRetries(0), kgo.ProducerLinger(time.Duration(p)*time.Millisecond), kgo.MaxBufferedRecords(2000), kgo.ProducerBatchMaxBytes(1<<16))
		work.Go(func() {
			r.produce(ctx, cl, uint32(p), rng, &acks)
			cl.Close()
		})
	}
	for end := time.Now().Add(patience); acks.Load() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(moment) // the moment of the kill is what is drawn
	r.b.kill()
	stop()
	work.Wait()
	if acks.Load() == 0 {
		r.Error("a broker that ran acknowledged nothing")
	}
	for _, err := range r.ackFaults {
		r.Error(err)
	}
}

// produce sends without waiting until something fails; what was not acknowledged is
// not sent again.
func (r *run) produce(ctx context.Context, cl *kgo.Client, p uint32, rng *rand.Rand, acks *atomic.Int64) {
	for ctx.Err() == nil {
		k := uint32(rng.IntN(keys))
		r.seq[p][k]++
		id := ID{p, k, r.seq[p][k]}
		cl.Produce(ctx, &kgo.Record{Topic: topic, Key: id.KeyBytes(), Value: id.Value()}, func(rec *kgo.Record, err error) {
			if err != nil {
				return
			}
			acks.Add(1)
			r.mu.Lock()
			defer r.mu.Unlock()
			if err := r.ledger.Add(Acked{id, Place{rec.Partition, rec.Offset}}); err != nil && len(r.ackFaults) < 10 {
				r.ackFaults = append(r.ackFaults, err)
			}
		})
	}
}

// restart starts the broker again; now and then it is killed while it starts.
func (r *run) restart() error {
	for r.rng.IntN(3) == 0 {
		if err := r.b.launch(); err != nil {
			return err
		}
		time.Sleep(time.Duration(r.rng.Int64N(int64(100 * time.Millisecond))))
		r.b.kill()
		r.inStart++
	}
	return r.b.start()
}

// check reads what is new in each partition and holds it against the ledger.
func (r *run) check() {
	cl := r.client()
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	cl.Close()
	if err != nil {
		r.Fatal(err)
	}
	for p := range int32(partitions) {
		end, ok := ends.Lookup(topic, p)
		if !ok || end.Err != nil {
			r.Fatalf("partition %d: no end: %v", p, end.Err)
		}
		if r.mayLose {
			r.lost += r.ledger.Forget(p, end.Offset)
			r.from[p] = min(r.from[p], end.Offset)
		}
		stored, err := r.read(ctx, p, r.from[p], end.Offset)
		if err != nil {
			r.Fatal(err)
		}
		errs := r.ledger.Check(p, r.from[p], stored)
		for i, err := range errs {
			if i == 5 {
				r.Errorf("... and %d more in partition %d", len(errs)-i, p)
				break
			}
			r.Error(err)
		}
		r.from[p] = end.Offset
	}
}

// read gives the records of a partition between two offsets.
func (r *run) read(ctx context.Context, p int32, from, end int64) ([]Stored, error) {
	if from == end {
		return nil, nil
	}
	cl := r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().At(from)}}))
	defer cl.Close()
	var out []Stored
	for int64(len(out)) < end-from {
		fs := cl.PollFetches(ctx)
		if errs := fs.Errors(); len(errs) > 0 {
			return nil, fmt.Errorf("partition %d after %d records: %w", p, len(out), errs[0].Err)
		}
		fs.EachRecord(func(rec *kgo.Record) { out = append(out, Stored{rec.Offset, rec.Key, rec.Value}) })
	}
	return out, nil
}
