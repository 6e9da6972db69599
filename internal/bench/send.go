package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// sent is what came of a load.
type sent struct {
	acked   atomic.Int64
	bytes   atomic.Int64
	latency Histogram
	elapsed time.Duration // from the first send to the last acknowledgement

	mu  sync.Mutex
	err error
}

func (s *sent) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *sent) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// send carries out a load. With a rate it is an open loop: each record has a
// due time that does not depend on how the earlier ones fare, and latency runs
// from the due time, so that a stall counts against every record that it held
// up (no coordinated omission). Without a rate, latency runs from the moment the
// record is handed to the client, waiting in the client's buffer included. Tag,
// when not nil, marks a record with its due time for a reader.
func send(ctx context.Context, g *cli.Globals, l Load, topic string, tag func(*kgo.Record, time.Time)) (*sent, error) {
	opts, err := l.producerOptions(topic)
	if err != nil {
		return nil, err
	}
	clients := make([]*cli.Conn, l.Producers)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := range clients {
		if clients[i], err = g.Connect(ctx, opts...); err != nil {
			return nil, err
		}
	}
	out, stock := &sent{}, newValues(l)
	var work sync.WaitGroup
	begin := time.Now()
	for i, c := range clients {
		work.Go(func() {
			p := &sender{load: l, client: c.Client, out: out, stock: stock, tag: tag, begin: begin, index: int64(i)}
			p.run(ctx)
		})
	}
	work.Wait()
	out.elapsed = time.Since(begin)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := out.failure(); err != nil {
		return nil, cli.Failed("send to "+topic, err)
	}
	return out, nil
}

// sender is one producing client's share of a load: every l.Producers-th record.
type sender struct {
	load   Load
	client *kgo.Client
	out    *sent
	stock  *values
	tag    func(*kgo.Record, time.Time)
	begin  time.Time
	index  int64
}

func (s *sender) run(ctx context.Context) {
	for n := s.index; s.load.Records == 0 || n < s.load.Records; n += int64(s.load.Producers) {
		due, ok := s.wait(ctx, n)
		if !ok || s.out.failure() != nil {
			break
		}
		r := s.stock.record(n)
		if s.tag != nil {
			s.tag(r, due)
		}
		s.client.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				s.out.fail(err)
				return
			}
			s.out.latency.Record(time.Since(due))
			s.out.acked.Add(1)
			s.out.bytes.Add(int64(len(r.Key) + len(r.Value)))
		})
	}
	if err := s.client.Flush(ctx); err != nil && ctx.Err() == nil {
		s.out.fail(err)
	}
}

// wait gives the due time of the n-th record of the whole load once it has come,
// or false when the load is over.
func (s *sender) wait(ctx context.Context, n int64) (time.Time, bool) {
	now := time.Now()
	if s.load.Rate == 0 {
		over := s.load.Duration > 0 && now.Sub(s.begin) >= s.load.Duration
		return now, !over && ctx.Err() == nil
	}
	due := s.begin.Add(time.Duration(float64(n) / s.load.Rate * float64(time.Second)))
	if s.load.Duration > 0 && due.Sub(s.begin) >= s.load.Duration {
		return due, false
	}
	if early := due.Sub(now); early > 0 {
		select {
		case <-ctx.Done():
			return due, false
		case <-time.After(early):
		}
	}
	return due, ctx.Err() == nil
}
