package txn

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// client is what a test knows of one transactional id.
type client struct {
	id   string
	v    Version
	p    Producer
	seqs [2]int32 // by partition of topic a; they restart with the epoch
}

func (c *client) become(p Producer) {
	if p != c.p {
		c.seqs = [2]int32{}
	}
	c.p = p
}

// step does one random thing. What it is refused it takes; only the classes that a
// client can run into are allowed.
func (c *client) step(t *testing.T, n *node, rng *rand.Rand) {
	var err error
	switch rng.IntN(8) {
	case 0:
		var p Producer
		in := Init{TimeoutMS: 1 + rng.Int32N(20_000), ExpectedID: noID, ExpectedEpoch: noEpoch}
		if rng.IntN(2) == 0 {
			in.ExpectedID, in.ExpectedEpoch = c.p.ID, c.p.Epoch
		}
		if p, err = n.Init(t.Context(), c.id, in); err == nil {
			c.become(p)
		}
	case 1, 2, 3, 4:
		i := rng.Int32N(2)
		if c.v == V1 && rng.IntN(4) > 0 {
			err = n.Add(t.Context(), c.id, c.p, Parts{"a": {i}}, V1)
		}
		if err == nil {
			if err = n.write(c.id, c.p, c.v, "a", i, c.seqs[i]); err == nil {
				c.seqs[i]++
			}
		}
	case 5, 6:
		var p Producer
		if p, err = n.End(t.Context(), c.id, End{ProducerID: c.p.ID, Epoch: c.p.Epoch, Commit: rng.IntN(3) > 0, Version: c.v}); err == nil {
			c.become(p)
		}
	case 7:
		time.Sleep(time.Duration(rng.IntN(8000)) * time.Millisecond)
	}
	if err == nil {
		return
	}
	switch model.ClassOf(err) {
	case model.ClassFenced, model.ClassTxnState, model.ClassConcurrentTxn, model.ClassNotInTxn, model.ClassProducerMapping:
	default:
		t.Fatalf("%s: %v", c.id, err)
	}
}

// look is everything of a node that a restart must not change.
func (n *node) look() string {
	s := ""
	for _, x := range n.List(Filter{LongerThanMS: -1}) {
		s += fmt.Sprintf("%s: %s\n", x.ID, show(&x))
	}
	for i := range int32(2) {
		w := n.part("a", i).Watermarks()
		s += fmt.Sprintf("a-%d: %d to %d %v\n", i, w.LastStable, w.HighWatermark, n.visible("a", i))
	}
	return s
}

// TestReplayEqualsLive: random clients of both versions, time-outs and crashes. A
// restart, which takes no time here, shows what was there before, and in the end
// nothing is left open.
func TestReplayEqualsLive(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			n := startNode(t, vfs.NewMem(0), 0)
			n.topic("a", 2)
			clients := []*client{{id: "x", v: V1}, {id: "y", v: V2}, {id: "z", v: V2}}
			for range 120 {
				if rng.IntN(12) == 0 {
					before := n.look()
					n = n.crash(rng.Uint64())
					if after := n.look(); after != before {
						t.Fatalf("seed %d: a restart made\n%sof\n%s", seed, after, before)
					}
				}
				clients[rng.IntN(len(clients))].step(t, n, rng)
			}
			time.Sleep(30 * time.Second)
			defer n.stop()
			for i := range int32(2) {
				if w := n.part("a", i).Watermarks(); w.LastStable != w.HighWatermark {
					t.Fatalf("seed %d: partition %d is held back: %+v", seed, i, w)
				}
			}
		})
	}
}

// TestCrashTearsNoCommit: power fails while a commit is on its way. Afterwards all
// of it is there or nothing, in every partition and in the coordinator; and all if
// the commit was acknowledged.
func TestCrashTearsNoCommit(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			n := startNode(t, vfs.NewMem(0), syncTime)
			defer n.stop()
			n.topic("a", 2)
			n.topic("b", 1)
			p := n.init("t")
			for _, part := range []struct {
				topic string
				index int32
			}{{"a", 0}, {"a", 1}, {"b", 0}} {
				if err := n.write("t", p, V2, part.topic, part.index, 0); err != nil {
					t.Fatal(err)
				}
			}
			acked := make(chan error, 1)
			go func() {
				_, err := n.End(t.Context(), "t", End{ProducerID: p.ID, Epoch: p.Epoch, Commit: true, Version: V2})
				acked <- err
			}()
			time.Sleep(time.Duration(rng.Int64N(int64(3 * syncTime))))
			over := false
			select {
			case err := <-acked:
				if err != nil {
					t.Fatal(err)
				}
				over = true
			default:
			}
			m := startNode(t, n.fs.Crash(rng.Uint64()), 0)
			defer m.stop()
			s, _ := m.Describe("t")
			got := []int{len(m.visible("a", 0)), len(m.visible("a", 1)), len(m.visible("b", 0))}
			want := []int{0, 0, 0}
			if s.State == CompleteCommit {
				want = []int{1, 1, 1}
			}
			if !reflect.DeepEqual(got, want) || (over && s.State != CompleteCommit) {
				t.Fatalf("seed %d: acknowledged %v, then %v with %v records", seed, over, s.State, got)
			}
		})
	}
}

// TestPreparedTransactionsAreFinished: a coordinator that stopped after Prepare is
// taken over by the next start, which writes the markers.
func TestPreparedTransactionsAreFinished(t *testing.T) {
	for _, commit := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := startNode(t, vfs.NewMem(0), syncTime)
			n.topic("a", 2)
			p := n.init("t")
			for i := range int32(2) {
				if err := n.write("t", p, V2, "a", i, 0); err != nil {
					t.Fatal(err)
				}
			}
			s := n.shard("t")
			s.mu.Lock()
			e := s.txns["t"]
			prep, err := e.txn.end(End{ProducerID: p.ID, Epoch: p.Epoch, Commit: commit, Version: V2}, n.nowMS())
			if err != nil {
				t.Fatal(err)
			}
			wait, err := n.recordLocked(s, e, prep)
			s.mu.Unlock()
			if err != nil || wait.wait(t.Context()) != nil {
				t.Fatal(err)
			}
			_, err = n.End(t.Context(), "t", End{ProducerID: p.ID, Epoch: p.Epoch, Commit: commit, Version: V2})
			wantClass(t, err, model.ClassConcurrentTxn)
			n = n.crash(7)
			defer n.stop()
			time.Sleep(time.Second)
			d, _ := n.Describe("t")
			if d.State != completed(commit) {
				t.Fatalf("state %v", d.State)
			}
			for i := range int32(2) {
				if got := len(n.visible("a", i)); (got == 1) != commit {
					t.Fatalf("commit %v: %d records in partition %d", commit, got, i)
				}
			}
		})
	}
}
