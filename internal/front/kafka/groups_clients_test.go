package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// crew is several consumers of one group over topic t, and what they have seen.
type crew struct {
	t          *testing.T
	b          *broker
	partitions int
	producer   *kgo.Client

	mu    sync.Mutex
	seen  map[int32]map[int64]int // partition → offset → times
	owner map[int32]*hand
	total int
}

// hand is one consumer of a crew.
type hand struct {
	*crew
	name string
	cl   *kgo.Client
	cut  atomic.Bool
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// DialContext lets the hand be cut off like a machine that loses its power.
func (h *hand) dial(ctx context.Context, network, host string) (net.Conn, error) {
	if h.cut.Load() {
		return nil, errors.New("cut off")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, host)
	if err == nil {
		h.mu.Lock()
		h.conns = append(h.conns, c)
		h.mu.Unlock()
	}
	return c, err
}

// newCrew starts a broker with short sessions and topic t.
func newCrew(t *testing.T, partitions int32) *crew {
	b := startBroker(t, func(b *broker) {
		b.static["group.min.session.timeout.ms"] = "100"
		b.static["group.consumer.session.timeout.ms"] = "2000"
		b.static["group.consumer.heartbeat.interval.ms"] = "100"
	})
	b.topic("t", partitions)
	return &crew{
		t: t, b: b, partitions: int(partitions), producer: b.client(kgo.DefaultProduceTopic("t")),
		seen: map[int32]map[int64]int{}, owner: map[int32]*hand{},
	}
}

// produce writes n records.
func (w *crew) produce(n int) {
	w.t.Helper()
	for i := range n {
		w.producer.Produce(context.Background(), kgo.KeySliceRecord(fmt.Append(nil, i), nil), func(_ *kgo.Record, err error) {
			if err != nil {
				w.t.Error(err)
			}
		})
	}
	if err := w.producer.Flush(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// shared holds when the hands own equally many partitions each.
func (w *crew) shared(hands ...*hand) func() bool {
	return func() bool {
		m := w.owners()
		for _, h := range hands {
			if m[h] != w.partitions/len(hands) {
				return false
			}
		}
		return true
	}
}

func (w *crew) hire(name string, opts ...kgo.Opt) *hand {
	h := &hand{crew: w, name: name}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.cl = w.b.client(append([]kgo.Opt{
		kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(), kgo.ClientID(name), kgo.Dialer(h.dial),
		kgo.SessionTimeout(2 * time.Second), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RebalanceTimeout(5 * time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { h.took(m["t"]) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { h.gave(m["t"]) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { h.gave(m["t"]) }),
	}, opts...)...)
	h.done.Go(h.work)
	w.t.Cleanup(h.end)
	return h
}

func (h *hand) took(ps []int32) {
	h.crew.mu.Lock()
	defer h.crew.mu.Unlock()
	for _, p := range ps {
		if other := h.owner[p]; other != nil && other != h && !other.cut.Load() {
			h.t.Errorf("%s takes partition %d, which %s has", h.name, p, other.name)
		}
		h.owner[p] = h
	}
}

func (h *hand) gave(ps []int32) {
	h.crew.mu.Lock()
	defer h.crew.mu.Unlock()
	for _, p := range ps {
		if h.owner[p] == h {
			delete(h.owner, p)
		}
	}
}

func (h *hand) work() {
	for h.ctx.Err() == nil {
		fetches := h.cl.PollRecords(h.ctx, 50)
		h.crew.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			if h.cut.Load() {
				return
			}
			if h.seen[r.Partition] == nil {
				h.seen[r.Partition] = map[int64]int{}
			}
			h.seen[r.Partition][r.Offset]++
			h.total++
		})
		h.crew.mu.Unlock()
		if !h.cut.Load() {
			_ = h.cl.CommitUncommittedOffsets(h.ctx)
		}
		h.cl.AllowRebalance()
	}
}

// kill cuts the hand off.
func (h *hand) kill() {
	h.cut.Store(true)
	h.mu.Lock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
}

func (h *hand) end() {
	h.stop()
	h.cl.CloseAllowingRebalance()
	h.done.Wait()
}

// distinct counts the records that somebody has seen.
func (w *crew) distinct() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, offsets := range w.seen {
		n += len(offsets)
	}
	return n
}

func (w *crew) owners() map[*hand]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := map[*hand]int{}
	for _, h := range w.owner {
		m[h]++
	}
	return m
}

// TestConsumersShareTheWork runs real consumers, eager, cooperative and static:
// they come, leave, die and lose the broker, and every record is seen, by one
// owner of its partition at a time.
func TestConsumersShareTheWork(t *testing.T) {
	const partitions, records = 12, 3000
	for _, tc := range []struct {
		name string
		opts func(name string) []kgo.Opt
	}{
		{"eager", func(string) []kgo.Opt { return []kgo.Opt{kgo.Balancers(kgo.RangeBalancer(), kgo.RoundRobinBalancer())} }},
		{"cooperative", func(string) []kgo.Opt { return []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())} }},
		{"static", func(name string) []kgo.Opt {
			return []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.InstanceID(name)}
		}},
		{"consumer protocol", func(string) []kgo.Opt { return []kgo.Opt{kgo.ServerSideBalancer()} }},
		{"consumer protocol, static", func(name string) []kgo.Opt { return []kgo.Opt{kgo.ServerSideBalancer(), kgo.InstanceID(name)} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newCrew(t, partitions)
			produce := func() { w.produce(records) }
			shared := w.shared
			hire := func(name string) *hand { return w.hire(name, tc.opts(name)...) }
			produce()
			one := hire("one")
			waitFor(t, "the only owner", shared(one))
			two, three := hire("two"), hire("three")
			waitFor(t, "three owners", shared(one, two, three))
			produce()
			two.kill()
			waitFor(t, "two owners", shared(one, three))
			produce()
			waitFor(t, "all records", func() bool { return w.distinct() == 3*records })
			four := hire("four")
			waitFor(t, "three owners again", shared(one, three, four))
			three.end()
			if !strings.Contains(tc.name, "static") { // a static member that leaves may come back
				waitFor(t, "two owners again", shared(one, four))
			}
			produce()
			waitFor(t, "all records", func() bool { return w.distinct() == 4*records })
			if w.total > 5*records {
				t.Errorf("%d records were seen for %d that there are", w.total, 4*records)
			}
		})
	}
}

// TestGroupMigratesWhileItRuns: classic members are replaced one by one by members
// of the consumer protocol, and back, and every record is seen.
func TestGroupMigratesWhileItRuns(t *testing.T) {
	const records = 1000
	for _, balancer := range []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()} {
		t.Run(balancer.ProtocolName(), func(t *testing.T) {
			w := newCrew(t, 12)
			kind := func() string {
				for _, l := range w.b.front.opts.Groups.List() {
					if l.ID == "g" {
						return l.Type
					}
				}
				return ""
			}
			old := func(name string) *hand { return w.hire(name, kgo.Balancers(balancer)) }
			modern := func(name string) *hand { return w.hire(name, kgo.ServerSideBalancer()) }
			produced := 0
			work := func() {
				w.produce(records)
				produced += records
				waitFor(t, "all records", func() bool { return w.distinct() == produced })
			}
			one, two := old("one"), old("two")
			waitFor(t, "two classic owners", w.shared(one, two))
			work()
			three := modern("three")
			waitFor(t, "three owners of both kinds", w.shared(one, two, three))
			if k := kind(); k != "consumer" {
				t.Errorf("the group is %s", k)
			}
			work()
			one.end()
			four := modern("four")
			waitFor(t, "another three", w.shared(two, three, four))
			two.end()
			waitFor(t, "two modern owners", w.shared(three, four))
			work()
			five := old("five")
			waitFor(t, "a classic one among them", w.shared(three, four, five))
			three.end()
			four.end()
			waitFor(t, "the classic one alone", w.shared(five))
			if k := kind(); k != "classic" {
				t.Errorf("the group is %s", k)
			}
			work()
		})
	}
}
