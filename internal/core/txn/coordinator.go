package txn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/producerids"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// maxIDsPerShard bounds the transactional ids of one shard.
const maxIDsPerShard = 100_000

// StateTopic is the internal topic that holds the states.
const StateTopic = "__transaction_state"

// Options say what a coordinator works with; all fields are needed.
type Options struct {
	IDs *producerids.Allocator
	// Ended is told of each marker that is durable, in journal order, before the
	// reply to who ended the transaction. It runs on the journal's goroutine: it
	// must be short and must not append.
	Ended func(Ended)
	Now   func() time.Time
	Log   *slog.Logger
}

// Ended says that a producer's transaction is over in one partition.
type Ended struct {
	Topic      string
	Index      int32
	ProducerID int64
	Epoch      int16
	Commit     bool
}

// Coordinator runs the transactional ids of this broker. All methods may be called
// from any goroutine.
type Coordinator struct {
	opt    Options
	topics *topics.Catalogue
	shards []*shard
	stop   context.CancelFunc
	done   chan struct{}
}

// shard is one partition of __transaction_state.
type shard struct {
	log *statelog.Log

	mu   sync.Mutex
	txns map[string]*entry
	busy map[string]*entry // those in Ongoing or a Prepare state
	last *ticket           // of the newest append
}

// entry is a transactional id under its shard's lock.
type entry struct {
	txn Txn
	// end is the newest end of a transaction. Until it is durable nothing new may
	// begin, or Ended would be told of it after the beginning of what follows.
	end *ticket
	// left are the partitions that miss their marker; only in a Prepare state.
	left Parts
}

// ending reports that the last transaction's end is on its way to the disk.
func (e *entry) ending() bool {
	if e.end == nil {
		return false
	}
	select {
	case <-e.end.done:
		e.end = nil
		return false
	default:
		return true
	}
}

// ticket is an append on its way to the disk.
type ticket struct {
	done chan struct{}
	err  error // set before done is closed
}

func newTicket() *ticket { return &ticket{done: make(chan struct{})} }

func (t *ticket) finish(err error) {
	t.err = err
	close(t.done)
}

func (t *ticket) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Open makes the internal topic if it is not there, reads the states, finishes the
// transactions whose end was decided, and starts the goroutine behind time-outs;
// Close stops it.
func Open(ctx context.Context, cat *topics.Catalogue, o Options) (*Coordinator, error) {
	c := &Coordinator{opt: o, topics: cat, done: make(chan struct{})}
	t, ok := cat.ByName(StateTopic)
	if !ok {
		var err error
		if t, err = c.createTopic(ctx); err != nil {
			return nil, fmt.Errorf("create %s: %w", StateTopic, err)
		}
	}
	for _, p := range t.Partitions {
		s := &shard{log: statelog.New(p, o.Now), txns: map[string]*entry{}, busy: map[string]*entry{}, last: newTicket()}
		s.last.finish(nil)
		if err := s.replay(ctx); err != nil {
			return nil, fmt.Errorf("read %s: %w", StateTopic, err)
		}
		c.shards = append(c.shards, s)
	}
	for _, s := range c.shards {
		c.tickShard(s, o.Now().UnixMilli())
	}
	run, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.run(run)
	return c, nil
}

func (c *Coordinator) createTopic(ctx context.Context) (*topics.Topic, error) {
	return c.topics.Create(ctx, topics.Spec{
		Name: StateTopic, Internal: true,
		Partitions: int32(c.topics.SettingInt("transaction.state.log.num.partitions")),
		Configs: map[string]string{
			"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "104857600",
		},
	}, false)
}

// resolvePartition finds a partition; false if there is none (any more).
func (c *Coordinator) resolvePartition(topic string, index int32) (*partition.Partition, bool) {
	t, ok := c.topics.ByName(topic)
	if !ok {
		return nil, false
	}
	return t.Partition(index)
}

// Close stops the time-outs. Commands that are under way end by themselves.
func (c *Coordinator) Close() {
	c.stop()
	<-c.done
}

func (s *shard) replay(ctx context.Context) error {
	err := s.log.Replay(ctx, func(r statelog.Entry) error {
		if r.Marker != nil {
			return nil
		}
		id, t, ok, err := readRecord(r.Record)
		if err != nil || !ok {
			return err
		}
		if t == nil {
			delete(s.txns, id)
			return nil
		}
		s.txns[id] = &entry{txn: *t}
		return nil
	})
	for id, e := range s.txns {
		s.noteLocked(id, e)
	}
	return err
}

// noteLocked keeps busy and left in step with the state.
func (s *shard) noteLocked(id string, e *entry) {
	switch {
	case e.txn.State.Preparing():
		e.left = e.txn.Parts
		s.busy[id] = e
	case e.txn.State == Ongoing:
		e.left = nil
		s.busy[id] = e
	default:
		e.left = nil
		delete(s.busy, id)
	}
}

// PartitionFor is the partition of __transaction_state that holds an id: Java's
// String.hashCode of the id, made positive, modulo the partitions.
func (c *Coordinator) PartitionFor(id string) int32 {
	return javaHash(id) % int32(len(c.shards))
}

func (c *Coordinator) shard(id string) *shard { return c.shards[c.PartitionFor(id)] }

// Producer is an identity to write under.
type Producer struct {
	ID    int64
	Epoch int16
}

// NewProducer gives the identity of an idempotent producer without a transactional id.
func (c *Coordinator) NewProducer(ctx context.Context) (Producer, error) {
	id, err := c.opt.IDs.Next(ctx)
	return Producer{ID: id}, err
}

// ErrTimeout refuses a transaction time-out that is not positive or too long.
var ErrTimeout = model.Err(model.ClassInvalid, "the transaction timeout must be positive and at most transaction.max.timeout.ms")

// Init gives a transactional producer its identity and fences those before it. It
// returns ClassConcurrentTxn after it has aborted an open transaction: ask again.
// ErrTimeout, ClassFenced (KIP-360), ClassOverloaded.
func (c *Coordinator) Init(ctx context.Context, id string, in Init) (Producer, error) {
	if in.TimeoutMS <= 0 || time.Duration(in.TimeoutMS)*time.Millisecond > c.topics.SettingMillis("transaction.max.timeout.ms") {
		return Producer{}, ErrTimeout
	}
	in.FreshID = noID
	s := c.shard(id)
	for {
		wait, p, err := c.tryInit(s, id, in)
		if errors.Is(err, errNeedProducerID) {
			if in.FreshID, err = c.opt.IDs.Next(ctx); err != nil {
				return Producer{}, err
			}
			continue
		}
		if wait != nil {
			if werr := wait.wait(ctx); werr != nil {
				return Producer{}, werr
			}
		}
		return p, err
	}
}

func (c *Coordinator) tryInit(s *shard, id string, in Init) (*ticket, Producer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.txns[id]
	if e == nil {
		if len(s.txns) >= maxIDsPerShard {
			return nil, Producer{}, model.Err(model.ClassOverloaded, "too many transactional ids; reuse them, or lower transactional.id.expiration.ms")
		}
		if in.FreshID == noID {
			return nil, Producer{}, errNeedProducerID
		}
		e = &entry{txn: fresh(id, in.FreshID)}
	}
	next, err := e.txn.init(in, c.nowMS())
	if err != nil {
		return nil, Producer{}, err
	}
	if next.State.Preparing() {
		t, err := c.endLocked(s, e, next)
		if err != nil {
			return nil, Producer{}, err
		}
		return t, Producer{}, errCompleting
	}
	t, err := c.recordLocked(s, e, next)
	if err != nil {
		return nil, Producer{}, err
	}
	s.txns[id] = e
	return t, Producer{next.ProducerID, next.Epoch}, nil
}

// Add takes partitions into the transaction of a producer (AddPartitionsToTxn,
// AddOffsetsToTxn) and starts it with the first. ClassProducerMapping, ClassFenced,
// ClassConcurrentTxn.
func (c *Coordinator) Add(ctx context.Context, id string, p Producer, parts Parts, v Version) error {
	s := c.shard(id)
	s.mu.Lock()
	t, err := c.addLocked(s, id, p, parts, v)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return t.wait(ctx)
}

func (c *Coordinator) addLocked(s *shard, id string, p Producer, parts Parts, v Version) (*ticket, error) {
	e := s.txns[id]
	if e == nil {
		return nil, wrongMapping(id, p.ID)
	}
	if e.ending() {
		return nil, errCompleting
	}
	next, err := e.txn.add(p.ID, p.Epoch, parts, v, c.nowMS())
	if err != nil {
		return nil, err
	}
	if next == nil {
		return s.last, nil
	}
	return c.recordLocked(s, e, next)
}

// Verify reports whether a producer's open transaction contains a partition
// (AddPartitionsToTxn with verify_only). ClassNotInTxn, and as Add.
func (c *Coordinator) Verify(id string, p Producer, topic string, index int32) error {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verifyLocked(id, p, topic, index)
}

func (s *shard) verifyLocked(id string, p Producer, topic string, index int32) error {
	e := s.txns[id]
	if e == nil {
		return wrongMapping(id, p.ID)
	}
	if e.ending() {
		return errCompleting
	}
	return e.txn.verify(p.ID, p.Epoch, topic, index)
}

// Enlist makes sure that parts belong to a producer's open transaction and runs
// write, which appends to them, before that transaction can end: nothing can come
// after a marker that belongs before it (KIP-890). With V2 what is missing is
// added; with V1 it is refused with ClassNotInTxn. What write appends enters the
// journal behind the record of the addition, so it needs no wait of its own. write
// must not block and must not call the coordinator; its error is Enlist's.
func (c *Coordinator) Enlist(id string, p Producer, parts Parts, v Version, write func() error) error {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if v == V2 {
		if _, err := c.addLocked(s, id, p, parts, v); err != nil {
			return err
		}
		return write()
	}
	for topic, ix := range parts {
		for _, i := range ix {
			if err := s.verifyLocked(id, p, topic, i); err != nil {
				return err
			}
		}
	}
	return write()
}

// End commits or aborts (EndTxn) and gives the identity to go on with, which
// differs from the old one with V2. It returns when all of it is durable, markers
// included, unless a partition cannot take its marker now. ClassProducerMapping,
// ClassFenced, ClassTxnState, ClassConcurrentTxn.
func (c *Coordinator) End(ctx context.Context, id string, in End) (Producer, error) {
	in.FreshID = noID
	s := c.shard(id)
	for {
		wait, p, err := c.tryEnd(s, id, in)
		if errors.Is(err, errNeedProducerID) {
			if in.FreshID, err = c.opt.IDs.Next(ctx); err != nil {
				return Producer{}, err
			}
			continue
		}
		if err != nil {
			return Producer{}, err
		}
		return p, wait.wait(ctx)
	}
}

func (c *Coordinator) tryEnd(s *shard, id string, in End) (*ticket, Producer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.txns[id]
	if e == nil {
		return nil, Producer{}, wrongMapping(id, in.ProducerID)
	}
	next, err := e.txn.end(in, c.nowMS())
	if err != nil {
		return nil, Producer{}, err
	}
	t := s.last
	if next != nil {
		if t, err = c.endLocked(s, e, next); err != nil {
			return nil, Producer{}, err
		}
	}
	after := e.txn
	if after.State.Preparing() {
		after = *after.complete(after.UpdatedMS)
	}
	return t, Producer{after.ProducerID, after.Epoch}, nil
}

// recordLocked puts a new state in line and takes it in.
func (c *Coordinator) recordLocked(s *shard, e *entry, next *Txn) (*ticket, error) {
	t := newTicket()
	if err := s.log.Append([]statelog.Record{next.record()}, t.finish); err != nil {
		return nil, err
	}
	s.last = t
	e.txn = *next
	s.noteLocked(next.ID, e)
	return t, nil
}

func (c *Coordinator) nowMS() int64 { return c.opt.Now().UnixMilli() }

// javaHash is Java's String.hashCode, over UTF-16 units, and its absolute value as
// Kafka takes it: 0 for the smallest integer.
func javaHash(s string) int32 {
	var h int32
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	if h == math.MinInt32 {
		return 0
	}
	return max(h, -h)
}
