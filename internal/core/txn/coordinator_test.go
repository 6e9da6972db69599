package txn

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/producerids"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// node is a coordinator with what it stands on, over a disk in memory. Tests run it
// in a synctest bubble, whose time passes at once.
type node struct {
	t     *testing.T
	fs    *vfs.Mem
	sync  time.Duration // how long the disk takes to make something durable
	store *partlog.Store
	cat   *topics.Catalogue
	*Coordinator

	mu    sync.Mutex
	ended []Ended
}

var quiet = slog.New(slog.DiscardHandler)

// syncTime is a slow disk's.
const syncTime = 10 * time.Millisecond

func startNode(t *testing.T, fs *vfs.Mem, sync time.Duration) *node {
	t.Helper()
	ctx := t.Context()
	slow := vfs.NewSlow(fs, func() time.Duration { return sync })
	n := &node{t: t, fs: fs, sync: sync}
	var err error
	if n.store, err = partlog.Open(ctx, partlog.Options{FS: slow, Dir: "data", Logger: quiet, JournalFileSize: 4 << 20}); err != nil {
		t.Fatal(err)
	}
	static := map[string]string{"transaction.state.log.num.partitions": "3", "transactional.id.expiration.ms": "3600000"}
	if n.cat, err = topics.Open(ctx, topics.Options{Store: n.store, Now: time.Now, Static: static}); err != nil {
		t.Fatal(err)
	}
	ids, err := producerids.Open(ctx, n.store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	n.Coordinator, err = Open(ctx, n.cat, Options{IDs: ids, Now: time.Now, Log: quiet, Ended: func(e Ended) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ended = append(n.ended, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) stop() {
	n.Close()
	if err := n.store.Close(); err != nil {
		n.t.Error(err)
	}
}

// crash gives the node that starts on what a power failure leaves of this one's disk.
func (n *node) crash(seed uint64) *node {
	fs := n.fs.Crash(seed)
	n.stop()
	return startNode(n.t, fs, n.sync)
}

func (n *node) topic(name string, partitions int32) {
	n.t.Helper()
	if _, err := n.cat.Create(n.t.Context(), topics.Spec{Name: name, Partitions: partitions}, false); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) part(topic string, index int32) *partition.Partition {
	n.t.Helper()
	p, ok := n.resolvePartition(topic, index)
	if !ok {
		n.t.Fatalf("no partition %s-%d", topic, index)
	}
	return p
}

// must unwraps a result that has to be there.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (n *node) init(id string) Producer {
	n.t.Helper()
	return must[Producer](n.t)(n.Init(n.t.Context(), id, Init{TimeoutMS: 60_000, ExpectedID: noID, ExpectedEpoch: noEpoch}))
}

func (n *node) end(id string, p Producer, commit bool, v Version) Producer {
	n.t.Helper()
	return must[Producer](n.t)(n.End(n.t.Context(), id, End{ProducerID: p.ID, Epoch: p.Epoch, Commit: commit, Version: v}))
}

// write appends one transactional record as Produce does, and waits for it.
func (n *node) write(id string, p Producer, v Version, topic string, index, seq int32) error {
	b := records.NewBuilder(records.Meta{FirstTimestamp: time.Now().UnixMilli(), ProducerID: p.ID, ProducerEpoch: p.Epoch, BaseSequence: seq, Transactional: true})
	b.Add(0, nil, fmt.Appendf(nil, "%d/%d/%d", p.ID, p.Epoch, seq), nil)
	batch, err := b.Build(0)
	if err != nil {
		return err
	}
	item := partition.Append{To: n.part(topic, index), Batch: batch, TxnV2: v == V2, Enlisted: true}
	done := make(chan error, 1)
	err = n.Enlist(id, p, Parts{topic: {index}}, v, func() error {
		return partition.Submit([]partition.Append{item}, func(_ []partition.Result, err error) { done <- err })
	})
	if err != nil {
		return err
	}
	return <-done
}

// visible lists what read_committed sees of a partition.
func (n *node) visible(topic string, index int32) []string {
	n.t.Helper()
	p := n.part(topic, index)
	w := p.Watermarks()
	res := must[partition.ReadResult](n.t)(p.Read(n.t.Context(), w.LogStart, 1<<20, true, partition.ReadCommitted))
	aborted := map[int64]bool{} // producers inside an aborted transaction
	var out []string
	for _, data := range res.Data {
		for len(data) > 0 {
			b, rest, err := model.NextBatch(data)
			if err != nil {
				n.t.Fatal(err)
			}
			data = rest
			for _, a := range res.Aborted {
				if a.ProducerID == b.ProducerID() && a.First == b.BaseOffset() {
					aborted[a.ProducerID] = true
				}
			}
			if b.IsControl() {
				delete(aborted, b.ProducerID())
				continue
			}
			r := must[records.Reader](n.t)(records.Open(b, 0))
			for {
				rec, ok, err := r.Next()
				if err != nil {
					n.t.Fatal(err)
				}
				if !ok {
					break
				}
				if !aborted[b.ProducerID()] {
					out = append(out, string(rec.Value))
				}
			}
		}
	}
	return out
}

func wantClass(t *testing.T, err error, class model.Class) {
	t.Helper()
	if err == nil || model.ClassOf(err) != class {
		t.Fatalf("error %v, want class %d", err, class)
	}
}

func TestCommitAndAbortReachEveryPartition(t *testing.T) {
	for _, v := range []Version{V1, V2} {
		synctest.Test(t, func(t *testing.T) {
			n := startNode(t, vfs.NewMem(0), syncTime)
			defer n.stop()
			n.topic("a", 2)
			p := n.init("t")
			if v == V1 {
				if err := n.Add(t.Context(), "t", p, Parts{"a": {0, 1}}, V1); err != nil {
					t.Fatal(err)
				}
			}
			for i := range int32(2) {
				if err := n.write("t", p, v, "a", i, 0); err != nil {
					t.Fatal(err)
				}
				if got := n.visible("a", i); got != nil {
					t.Fatalf("version %d: partition %d shows %v before the commit", v, i, got)
				}
			}
			next := n.end("t", p, true, v)
			if (next == p) != (v == V1) {
				t.Fatalf("version %d: identity %v after %v", v, next, p)
			}
			for i := range int32(2) {
				if got := n.visible("a", i); len(got) != 1 {
					t.Fatalf("version %d: partition %d shows %v after the commit", v, i, got)
				}
			}
			want := []Ended{{"a", 0, p.ID, next.Epoch, true}, {"a", 1, p.ID, next.Epoch, true}}
			if !slices.Equal(n.ended, want) {
				t.Fatalf("told %v, want %v", n.ended, want)
			}
			seq := int32(1)
			if v == V2 {
				seq = 0
			} else if err := n.Add(t.Context(), "t", next, Parts{"a": {1}}, V1); err != nil {
				t.Fatal(err)
			}
			if err := n.write("t", next, v, "a", 1, seq); err != nil {
				t.Fatal(err)
			}
			n.end("t", next, false, v)
			if got := n.visible("a", 1); len(got) != 1 {
				t.Fatalf("version %d: %v after the abort", v, got)
			}
		})
	}
}

// TestLateWritesCannotOpenATransaction: a batch that comes after its transaction's
// end is refused, and the last stable offset moves on (KIP-890).
func TestLateWritesCannotOpenATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		p := n.init("t")
		wantClass(t, n.write("t", p, V1, "a", 0, 0), model.ClassNotInTxn)
		if err := n.Add(t.Context(), "t", p, Parts{"a": {0}}, V1); err != nil {
			t.Fatal(err)
		}
		if err := n.write("t", p, V1, "a", 0, 0); err != nil {
			t.Fatal(err)
		}
		n.end("t", p, true, V1)
		wantClass(t, n.write("t", p, V1, "a", 0, 1), model.ClassNotInTxn)
		if w := n.part("a", 0).Watermarks(); w.LastStable != w.HighWatermark {
			t.Fatalf("%+v", w)
		}
	})
}

func TestTimeoutAbortsAndFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		p := n.init("t")
		if err := n.write("t", p, V2, "a", 0, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if s, _ := n.Describe("t"); s.State != Ongoing {
			t.Fatalf("aborted after 59 of 60 seconds: %v", s.State)
		}
		time.Sleep(3 * time.Second)
		if s, _ := n.Describe("t"); s.State != CompleteAbort || s.Epoch != p.Epoch+1 {
			t.Fatalf("after the time-out: %+v", s)
		}
		wantClass(t, n.write("t", p, V2, "a", 0, 1), model.ClassFenced)
		_, err := n.End(t.Context(), "t", End{ProducerID: p.ID, Epoch: p.Epoch, Commit: true, Version: V2})
		wantClass(t, err, model.ClassFenced)
		if got := n.visible("a", 0); got != nil {
			t.Fatalf("shows %v", got)
		}
	})
}

func TestInitAbortsAndAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		p := n.init("t")
		if err := n.write("t", p, V2, "a", 0, 0); err != nil {
			t.Fatal(err)
		}
		_, err := n.Init(t.Context(), "t", Init{TimeoutMS: 1000, ExpectedID: noID, ExpectedEpoch: noEpoch})
		wantClass(t, err, model.ClassConcurrentTxn)
		if q := n.init("t"); q.ID != p.ID || q.Epoch != p.Epoch+2 {
			t.Fatalf("got %v after %v", q, p)
		}
		for _, ms := range []int32{0, -1, 900_001} {
			if _, err := n.Init(t.Context(), "t", Init{TimeoutMS: ms, ExpectedID: noID, ExpectedEpoch: noEpoch}); err != ErrTimeout {
				t.Fatalf("timeout %d: %v", ms, err)
			}
		}
	})
}

func TestIdleIDsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		p := n.init("old")
		time.Sleep(time.Hour + 2*time.Minute)
		if _, ok := n.Describe("old"); ok {
			t.Fatal("an id that was idle for an hour is still known")
		}
		n = n.crash(1)
		defer n.stop()
		if got := n.List(Filter{LongerThanMS: -1}); len(got) != 0 {
			t.Fatalf("after a restart: %v", got)
		}
		q := must[Producer](t)(n.Init(t.Context(), "old", Init{TimeoutMS: 1, ExpectedID: p.ID, ExpectedEpoch: p.Epoch}))
		if q.ID == p.ID || q.Epoch != 0 {
			t.Fatalf("a forgotten id gave %v, which was %v", q, p)
		}
	})
}

// TestLargeTransactionsEnd covers more partitions than one append group carries,
// a topic that is gone, and a transaction without partitions.
func TestLargeTransactionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		const parts = maxGroupMarkers + 10
		n.topic("big", parts)
		n.topic("gone", 1)
		p := n.init("t")
		all := Parts{"gone": {0}}
		for i := range int32(parts) {
			all["big"] = append(all["big"], i)
		}
		if err := n.Add(t.Context(), "t", p, all, V2); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int32{0, parts - 1} {
			if err := n.write("t", p, V2, "big", i, 0); err != nil {
				t.Fatal(err)
			}
		}
		gone, _ := n.cat.ByName("gone")
		if err := n.cat.Delete(t.Context(), gone.ID); err != nil {
			t.Fatal(err)
		}
		p = n.end("t", p, true, V2)
		for _, i := range []int32{0, parts - 1} {
			if got := n.visible("big", i); len(got) != 1 {
				t.Fatalf("partition %d shows %v", i, got)
			}
		}
		if len(n.ended) != parts {
			t.Fatalf("%d markers, want %d", len(n.ended), parts)
		}
		p = n.end("t", p, false, V2)
		if s, _ := n.Describe("t"); s.State != CompleteAbort || s.Epoch != p.Epoch {
			t.Fatalf("an abort without partitions: %+v", s)
		}
	})
}

func TestForeignMarkersEndHangingTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		p := n.init("t")
		if err := n.write("t", p, V2, "a", 0, 0); err != nil {
			t.Fatal(err)
		}
		mark := func(topic string, epoch int16, coordinator int32) Mark {
			return Mark{Ended: Ended{Topic: topic, ProducerID: p.ID, Epoch: epoch}, CoordinatorEpoch: coordinator}
		}
		errs := n.WriteMarks(t.Context(), []Mark{mark("none", 0, 0), mark("a", -1, 0), mark("a", 0, 1<<30), mark("a", p.Epoch, 0)})
		wantClass(t, errs[0], model.ClassNotFound)
		wantClass(t, errs[1], model.ClassFenced)
		if errs[2] != ErrCoordinatorFenced || errs[3] != nil {
			t.Fatal(errs)
		}
		if w := n.part("a", 0).Watermarks(); w.LastStable != w.HighWatermark {
			t.Fatalf("%+v", w)
		}
		if len(n.ended) != 1 || n.ended[0].Commit {
			t.Fatalf("told %v", n.ended)
		}
	})
}

// TestNothingBeginsBeforeTheEndIsDurable: what is staged behind a marker that is on
// its way must not be taken for a part of the transaction that it ends.
func TestNothingBeginsBeforeTheEndIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		p := n.init("t")
		if err := n.Add(t.Context(), "t", p, Parts{"a": {0}}, V1); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := n.End(t.Context(), "t", End{ProducerID: p.ID, Epoch: p.Epoch, Commit: true, Version: V1})
			ended <- err
		}()
		time.Sleep(syncTime / 2)
		wantClass(t, n.Add(t.Context(), "t", p, Parts{"a": {0}}, V1), model.ClassConcurrentTxn)
		wantClass(t, n.write("t", p, V2, "a", 0, 0), model.ClassConcurrentTxn)
		wantClass(t, n.Verify("t", p, "a", 0), model.ClassConcurrentTxn)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := n.Add(t.Context(), "t", p, Parts{"a": {0}}, V1); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRepeatsWaitForTheDisk: a repeated command is not answered before what it
// repeats is durable.
func TestRepeatsWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		p := n.init("t")
		parts := Parts{"a": {0}}
		end := End{ProducerID: p.ID, Epoch: p.Epoch, Commit: true, Version: V2}
		for _, command := range []func() error{
			func() error { return n.Add(t.Context(), "t", p, parts, V2) },
			func() error { _, err := n.End(t.Context(), "t", end); return err },
		} {
			first := make(chan error, 1)
			go func() { first <- command() }()
			time.Sleep(syncTime / 2)
			if err := command(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case err := <-first:
				if err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatal("the repeat was answered first")
			}
		}
	})
}

func TestConcurrentClientsOfOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, vfs.NewMem(0), syncTime)
		defer n.stop()
		n.topic("a", 1)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					p, err := n.Init(context.Background(), "t", Init{TimeoutMS: 60_000, ExpectedID: noID, ExpectedEpoch: noEpoch})
					if err != nil {
						continue
					}
					if n.write("t", p, V2, "a", 0, 0) == nil {
						_, _ = n.End(context.Background(), "t", End{ProducerID: p.ID, Epoch: p.Epoch, Commit: true, Version: V2})
					}
				}
			})
		}
		wg.Wait()
		for { // the first may have to abort what the last one left open
			_, err := n.Init(t.Context(), "t", Init{TimeoutMS: 1, ExpectedID: noID, ExpectedEpoch: noEpoch})
			if err == nil {
				break
			}
			wantClass(t, err, model.ClassConcurrentTxn)
		}
		if w := n.part("a", 0).Watermarks(); w.LastStable != w.HighWatermark {
			t.Fatalf("%+v", w)
		}
		seen := map[string]bool{}
		for _, v := range n.visible("a", 0) {
			if seen[v] {
				t.Fatalf("%s twice", v)
			}
			seen[v] = true
		}
	})
}
