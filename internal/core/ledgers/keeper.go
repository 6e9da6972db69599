// Package ledgers keeps every ledger of the broker at work: it reads partitions,
// runs the pure machines of core/ledger under short locks, writes their deltas
// and snapshots to the ledgers' topic, wakes them when locks and delays end, and
// buries dead records. Share groups and AMQP queues are its callers; it does not
// know either's protocol.
//
// keeper.go opens and closes, subscription.go settles, acquire.go hands out,
// undertaker.go dead-letters, snapshot.go bounds the replay, codec.go has the bytes.
package ledgers

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// Topic is the internal topic that holds the ledgers' records.
const Topic = "__ledgers"

// defaultPartitions spreads the ledgers; it is fixed when the topic is made.
const defaultPartitions = 16

// Options configure a keeper.
type Options struct {
	Topics *topics.Catalogue
	Now    func() time.Time
	Logger *slog.Logger
}

// Keeper holds every ledger. Its methods may be called from any goroutine.
type Keeper struct {
	o     Options
	logs  []*statelog.Log
	stop  context.CancelFunc
	done  sync.WaitGroup
	poke  chan struct{} // the plan changed
	dead  chan struct{} // there are deaths
	snaps chan *Subscription

	dmu    sync.Mutex
	deaths []death

	mu    sync.Mutex
	subs  map[Key]*Subscription
	held  map[Key]held // recovered, not yet opened by their owner
	plans plans
}

// held is a ledger as the replay found it.
type held struct {
	snap   ledger.Snapshot
	deltas []ledger.Delta // since the snapshot
	seqs   []seqEnd       // which of them belong to which record
	seq    int64
	bytes  int
	needed model.Offset
}

// seqEnd says that the deltas up to end come from records up to seq.
type seqEnd struct {
	seq int64
	end int
}

// Open makes or finds the ledgers' topic, replays it and starts the keeper's
// goroutines; Close joins them.
func Open(ctx context.Context, o Options) (*Keeper, error) {
	t, ok := o.Topics.ByName(Topic)
	if !ok {
		var err error
		spec := topics.Spec{Name: Topic, Partitions: defaultPartitions, Internal: true, Configs: map[string]string{"retention.ms": "-1"}}
		if t, err = o.Topics.Create(ctx, spec, false); err != nil {
			return nil, fmt.Errorf("open ledgers: %w", err)
		}
	}
	k := &Keeper{o: o, poke: make(chan struct{}, 1), dead: make(chan struct{}, 1), snaps: make(chan *Subscription, 64), subs: map[Key]*Subscription{}, held: map[Key]held{}}
	for _, p := range t.Partitions {
		log := statelog.New(p, o.Now)
		k.logs = append(k.logs, log)
		if err := k.replay(ctx, log); err != nil {
			return nil, fmt.Errorf("open ledgers: %w", err)
		}
	}
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.done.Go(func() { k.timer(ctx) })
	k.done.Go(func() { k.timedUndertaker(ctx) })
	k.done.Go(func() { k.snapshots(ctx) })
	return k, nil
}

// Close stops the keeper's goroutines. Ledgers need no closing: what counts is durable.
func (k *Keeper) Close() {
	k.stop()
	k.done.Wait()
}

// Subscribe gives the ledger of key, new and beginning at start if there is none.
// created says which.
func (k *Keeper) Subscribe(key Key, p *partition.Partition, start model.Offset, cfg Config) (s *Subscription, created bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.subs[key]; s != nil {
		return s, false, nil
	}
	s = &Subscription{key: key, part: p, log: k.logs[k.shard(key)], k: k, cfg: cfg, members: map[string]ledger.Member{}, waiters: map[*partition.Waiter]struct{}{}, needed: -1}
	h, known := k.held[key]
	if known {
		if err := s.restore(h); err != nil {
			return nil, false, err
		}
		delete(k.held, key)
	} else {
		s.l = ledger.New(start, cfg.Config)
	}
	k.subs[key] = s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !known {
		s.seq++
		s.writeSnapshotLocked(s.seq, s.l.Snapshot(), func(error) {})
	}
	s.planNewLocked(k)
	return s, !known, nil
}

// restore brings a recovered ledger back to life, with the keys of delayed records.
func (s *Subscription) restore(h held) error {
	s.l = ledger.Restore(h.snap, s.cfg.Config)
	for _, d := range h.deltas {
		s.l.Apply(d)
	}
	s.seq, s.deltas, s.needed = h.seq, h.bytes, h.needed
	for _, span := range s.l.NeedKeys() {
		if err := s.rekey(span); err != nil {
			return fmt.Errorf("read the keys of delayed records %d to %d: %w", span.First, span.Last, err)
		}
	}
	return nil
}

// Get gives a ledger that was subscribed to since the start.
func (k *Keeper) Get(key Key) (*Subscription, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.subs[key]
	return s, ok
}

// Keys lists all ledgers, also those that nobody opened since the start.
func (k *Keeper) Keys() []Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := make([]Key, 0, len(k.subs)+len(k.held))
	for key := range k.subs {
		keys = append(keys, key)
	}
	for key := range k.held {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		if a.Owner != b.Owner {
			if a.Owner < b.Owner {
				return -1
			}
			return 1
		}
		return a.Part.Compare(b.Part)
	})
	return keys
}

// Delete forgets a ledger durably; done runs when it is.
func (k *Keeper) Delete(key Key, done func(error)) {
	k.mu.Lock()
	s, h := k.subs[key], k.held[key]
	delete(k.subs, key)
	delete(k.held, key)
	k.mu.Unlock()
	if s != nil {
		s.mu.Lock()
		s.gone = true
		s.wakeLocked()
		s.mu.Unlock()
	} else if h.seq == 0 {
		done(nil)
		return
	}
	log := k.logs[k.shard(key)]
	if err := log.Append([]statelog.Record{{Key: key.encode()}}, done); err != nil {
		done(err)
	}
}

func (k *Keeper) shard(key Key) int {
	h := fnv.New32a()
	_, _ = h.Write(key.encode()) // never fails
	return int(h.Sum32() % uint32(len(k.logs)))
}
