// Package shares runs a share group against a broker that is killed, slowed down
// and restarted, and checks the accounting: every record ends accepted or dead,
// nobody gets what another holds, counts only rise, keys keep their order, delays
// are not cut short. Check is a pure function over what members saw; Run drives
// any sim.Cluster, in virtual or in real time.
package shares

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/test/sim"
)

// Options shape a round. Zero values mean the defaults.
type Options struct {
	Seed     uint64
	Duration time.Duration // of the work; 20 s
	Log      *slog.Logger
}

const (
	topic, deadTopic = "work", "dlq.work"
	group            = "workers"

	lock    = 4 * time.Second
	backoff = 500 * time.Millisecond
	limit   = 4
	// patience bounds each call of a client.
	patience = 10 * time.Second
)

// world is a round under way.
type world struct {
	cluster sim.Cluster
	log     *slog.Logger
	ctx     context.Context // ends when the work is to stop

	mu sync.Mutex
	h  *History
}

func now() int64 { return time.Now().UnixMilli() }

// Run starts the cluster, lets members work while it is hurt, drains what is left,
// and gives the history. The cluster runs when it returns without an error.
func Run(c sim.Cluster, o Options) (*History, error) {
	if o.Duration == 0 {
		o.Duration = 20 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Duration)
	defer cancel()
	w := &world{cluster: c, log: o.Log, ctx: ctx, h: &History{
		Lock: lock.Milliseconds(), Backoff: backoff.Milliseconds(), Limit: limit, Ordered: o.Seed%2 == 0,
		Keys: map[int64]string{}, Ends: map[string]int64{}, Dead: map[int64]int{},
	}}
	if err := w.setUp(); err != nil {
		return nil, err
	}
	var work sync.WaitGroup
	work.Go(func() { w.produce(rand.New(rand.NewPCG(o.Seed, 1))) })
	for i := range 3 {
		rng := rand.New(rand.NewPCG(o.Seed, uint64(10+i)))
		work.Go(func() { w.member(fmt.Sprint("m", i), rng) })
	}
	err := w.hurt(rand.New(rand.NewPCG(o.Seed, 2)))
	cancel()
	work.Wait()
	if err != nil {
		return nil, err
	}
	return w.h, w.drain()
}

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(w.cluster.Client(), append(opts, kgo.RetryTimeout(patience))...)...)
	if err != nil {
		panic(err) // options that contradict each other
	}
	return cl
}

func (w *world) setUp() error {
	cl := w.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	adm := kadm.NewClient(cl)
	yes := "true"
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		return err
	}
	if _, err := adm.CreateTopic(ctx, 1, 1, map[string]*string{"errors.deadletterqueue.group.enable": &yes}, deadTopic); err != nil {
		return err
	}
	settings := map[string]string{
		"share.auto.offset.reset": "earliest", "share.delivery.count.limit": strconv.Itoa(limit),
		"share.record.lock.duration.ms":     strconv.FormatInt(lock.Milliseconds(), 10),
		"errors.deadletterqueue.topic.name": deadTopic,
		"daybook.share.backoff.initial.ms":  strconv.FormatInt(backoff.Milliseconds(), 10), "daybook.share.backoff.multiplier": "1",
	}
	if w.h.Ordered {
		settings["daybook.share.order"] = "key"
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	for name, value := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, &value
		res.Configs = append(res.Configs, c)
	}
	req.Resources = append(req.Resources, res)
	resp, err := req.RequestWith(ctx, cl)
	if err == nil && resp.Resources[0].ErrorCode != 0 {
		err = fmt.Errorf("settings: code %d", resp.Resources[0].ErrorCode)
	}
	return err
}

func (w *world) pause(rng *rand.Rand, d time.Duration) {
	select {
	case <-time.After(time.Duration(rng.Int64N(int64(d)))):
	case <-w.ctx.Done():
	}
}

// produce writes records of a few keys.
func (w *world) produce(rng *rand.Rand) {
	cl := w.client(kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(patience))
	defer cl.Close()
	for w.ctx.Err() == nil {
		for range 1 + rng.IntN(6) {
			r := &kgo.Record{Topic: topic, Key: fmt.Append(nil, "k", rng.IntN(5))}
			cl.Produce(context.Background(), r, func(r *kgo.Record, err error) {
				if err == nil {
					w.mu.Lock()
					w.h.Keys[r.Offset] = string(r.Key)
					w.mu.Unlock()
				}
			})
		}
		w.pause(rng, 200*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = cl.Flush(ctx) // what is not flushed was never acknowledged
}

// member works in several lives: it settles at random, forgets, and goes away.
func (w *world) member(name string, rng *rand.Rand) {
	for life := 0; w.ctx.Err() == nil; life++ {
		m := w.newMember(fmt.Sprintf("%s/%d", name, life))
		for n := 1 + rng.IntN(20); n > 0 && w.ctx.Err() == nil; n-- {
			m.work(w.ctx, func(*Delivery) Verb {
				if rng.IntN(30) == 0 {
					w.pause(rng, time.Second) // work takes time: kills meet records that are held
				}
				switch r := rng.IntN(20); {
				case r < 12:
					return Accept
				case r < 17:
					return Release
				case r < 18:
					return Reject
				}
				return None
			})
			w.pause(rng, 300*time.Millisecond)
		}
		m.end()
	}
}

// consumer is one life of a member.
type consumer struct {
	w       *world
	name    string
	cl      *kgo.Client
	refused *atomic.Bool // some acknowledgement of this life was not confirmed
}

func (w *world) newMember(name string) *consumer {
	m := &consumer{w: w, name: name, refused: new(atomic.Bool)}
	refused := m.refused // not m's, which abandon overwrites
	m.cl = w.client(kgo.ConsumeTopics(topic), kgo.ShareGroup(group), kgo.ShareMaxRecords(20), kgo.ShareMaxRecordsStrict(),
		kgo.ShareAckCallback(func(_ *kgo.Client, rs kgo.ShareAckResults) {
			for _, r := range rs {
				if r.Err != nil {
					refused.Store(true)
				}
			}
		}))
	return m
}

// work takes what is there and settles it as choose says. What choose leaves alone
// stays held: the client goes on only when its lock is over.
func (m *consumer) work(ctx context.Context, choose func(*Delivery) Verb) (got int) {
	poll, cancel := context.WithTimeout(ctx, 2*time.Second)
	fetches := m.cl.PollRecords(poll, 20)
	cancel()
	var batch []*Delivery
	forgot := false
	m.refused.Store(false)
	fetches.EachRecord(func(r *kgo.Record) {
		d := &Delivery{Member: m.name, Offset: r.Offset, Count: r.DeliveryCount(), At: now()}
		m.w.mu.Lock()
		m.w.h.Deliveries = append(m.w.h.Deliveries, d)
		m.w.mu.Unlock()
		batch = append(batch, d)
	})
	i := 0
	fetches.EachRecord(func(r *kgo.Record) {
		d := batch[i]
		i++
		verb := choose(d)
		m.w.mu.Lock()
		d.Verb, d.Settled = verb, now()
		m.w.mu.Unlock()
		switch verb {
		case Accept:
			r.Ack(kgo.AckAccept)
		case Release:
			r.Ack(kgo.AckRelease)
		case Reject:
			r.Ack(kgo.AckReject)
		default:
			forgot = true
		}
	})
	flush, cancel := context.WithTimeout(context.Background(), patience)
	err := m.cl.FlushAcks(flush)
	cancel()
	m.w.mu.Lock()
	if err == nil && !m.refused.Load() {
		for _, d := range batch {
			if d.Verb != None {
				d.Confirmed = now()
			}
		}
	}
	m.w.mu.Unlock()
	if forgot {
		m.abandon()
	}
	return len(batch)
}

// abandon ends a life that still holds records, so that the client does not accept
// them by itself at the next poll.
func (m *consumer) abandon() {
	name := m.name
	m.end()
	*m = *m.w.newMember(name + "'")
}

func (m *consumer) end() {
	m.w.mu.Lock()
	m.w.h.Ends[m.name] = now()
	m.w.mu.Unlock()
	m.cl.Close()
}

// hurt hurts the cluster until the round is over, and leaves it running and well.
func (w *world) hurt(rng *rand.Rand) error {
	for w.ctx.Err() == nil {
		w.pause(rng, 6*time.Second)
		if w.ctx.Err() != nil {
			break
		}
		end := w.cluster.Kill
		switch rng.IntN(3) {
		case 0:
			end = w.cluster.Stop
		case 1:
			w.cluster.SlowDisk(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
			continue
		}
		w.noteKill()
		if err := end(); err != nil {
			return err
		}
		w.pause(rng, 2*time.Second)
		w.cluster.SlowDisk(0)
		w.noteKill()
		if err := w.cluster.Start(); err != nil {
			return err
		}
	}
	w.cluster.SlowDisk(0)
	return nil
}

func (w *world) noteKill() {
	w.mu.Lock()
	w.h.Kills = append(w.h.Kills, now())
	w.mu.Unlock()
}

// drain accepts everything that is still owed, and reads the dead letters.
func (w *world) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	m := w.newMember("drain")
	for idle := 0; idle < 5; {
		if ctx.Err() != nil {
			return fmt.Errorf("drain: %w", ctx.Err())
		}
		if m.work(ctx, func(*Delivery) Verb { return Accept }) == 0 {
			idle++
		} else {
			idle = 0
		}
	}
	m.end()
	cl := w.client()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, deadTopic)
	cl.Close()
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(deadTopic, 0)
	cl = w.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{deadTopic: {0: kgo.NewOffset().At(0)}}))
	defer cl.Close()
	for at := int64(0); at < end.Offset; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return fmt.Errorf("read the dead letters: %w", err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			for _, h := range r.Headers {
				if h.Key == "__dlq.errors.offset" {
					o, _ := strconv.ParseInt(string(h.Value), 10, 64)
					w.h.Dead[o]++
				}
			}
		})
	}
	return nil
}
