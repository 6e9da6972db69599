package ledgers

import (
	"cmp"
	"context"
	"sync"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
)

// Config shapes a subscription.
type Config struct {
	ledger.Config
	// Isolation says whether records of open and aborted transactions are seen.
	Isolation partition.Isolation
	// SingleActive gives records to one member at a time: the first that asks, until
	// it leaves.
	SingleActive bool
	// DelayHeader names the record header that holds a delay in milliseconds, as
	// text; "" for none.
	DelayHeader string
	// DeadLetter gives what is to be appended for dead records, in one append
	// group with their settlement; nil drops them. It may read and block.
	DeadLetter func(ctx context.Context, d Dead) ([]partition.Append, error)
}

// Dead is what DeadLetter is told: records that died, as they lie in the log.
type Dead struct {
	Key    Key
	From   *partition.Partition
	Span   ledger.Span
	Count  int
	Reason string
	Data   [][]byte // batches that hold the span
}

// Subscription is one ledger at work: decide under a short lock, append what
// must be durable, and tell when it is. Methods may be called from any goroutine.
type Subscription struct {
	// immutable
	key  Key
	part *partition.Partition
	log  *statelog.Log
	k    *Keeper

	mu      sync.Mutex
	cfg     Config
	l       *ledger.Ledger
	seq     int64        // of the newest delta record
	deltas  int          // bytes of delta records since the newest snapshot
	size    int          // bytes of the newest snapshot
	needed  model.Offset // first record of the log that a replay of this ledger needs; -1: none
	writing bool         // a snapshot is being written
	alarm   int64        // when the keeper will call tick; 0: not planned
	members map[string]ledger.Member
	names   []string // by Member, from 1 on
	waiters map[*partition.Waiter]struct{}
	dead    int64  // records that died since the start
	active  string // with SingleActive: the member whose turn it is; "" for nobody
	gone    bool
}

// Key names the ledger.
func (s *Subscription) Key() Key { return s.key }

// Partition is what the subscription reads.
func (s *Subscription) Partition() *partition.Partition { return s.part }

// Reconfigure changes bounds and choices.
func (s *Subscription) Reconfigure(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	s.l.Reconfigure(cfg.Config)
	s.wakeLocked()
}

// memberLocked gives the number of a member's name.
func (s *Subscription) memberLocked(name string) ledger.Member {
	if m, ok := s.members[name]; ok {
		return m
	}
	s.names = append(s.names, name)
	m := ledger.Member(len(s.names))
	s.members[name] = m
	return m
}

// Watch wakes w when there may be more to acquire, until Unwatch.
func (s *Subscription) Watch(w *partition.Waiter) {
	s.mu.Lock()
	s.waiters[w] = struct{}{}
	s.mu.Unlock()
	s.part.Watch(w)
}

// Unwatch removes w.
func (s *Subscription) Unwatch(w *partition.Waiter) {
	s.part.Unwatch(w)
	s.mu.Lock()
	delete(s.waiters, w)
	s.mu.Unlock()
}

func (s *Subscription) wakeLocked() {
	for w := range s.waiters {
		select {
		case w.C <- struct{}{}:
		default:
		}
	}
}

// commitLocked appends what a command changed and calls done when it is durable
// and its dead records, which go to the undertaker, are buried. It must be called
// for every command, in the order in which the commands changed the ledger.
func (s *Subscription) commitLocked(ch ledger.Changes, done func(error)) {
	s.planLocked()
	s.wakeLocked()
	finish := gather(1+len(ch.Dead), done)
	for _, d := range ch.Dead {
		s.dead += d.Len()
		s.k.bury(death{s, d, finish})
	}
	if len(ch.Deltas) == 0 {
		finish(nil)
		return
	}
	if err := s.log.Append([]statelog.Record{s.recordLocked(ch.Deltas)}, finish); err != nil {
		finish(err)
	}
	s.snapshotIfDueLocked()
}

// gather gives a function that calls done at its n-th call, with the first error.
func gather(n int, done func(error)) func(error) {
	if n == 1 {
		return done
	}
	var mu sync.Mutex
	var first error
	return func(err error) {
		mu.Lock()
		first = cmp.Or(first, err)
		n--
		last := n == 0
		mu.Unlock()
		if last {
			done(first)
		}
	}
}

func (s *Subscription) recordLocked(ds []ledger.Delta) statelog.Record {
	s.seq++
	v := encodeDeltas(s.seq, ds)
	s.deltas += len(v)
	return statelog.Record{Key: s.key.encode(), Value: v}
}

// planLocked makes sure that the keeper comes back when the next alarm is due.
func (s *Subscription) planLocked() {
	if at, ok := s.l.NextAlarm(); ok && (s.alarm == 0 || at < s.alarm) {
		s.alarm = at
		s.k.plan(at, s)
	}
}

// tick does what is due.
func (s *Subscription) tick(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarm = 0
	if s.gone {
		return
	}
	s.commitLocked(s.l.Tick(now), func(error) {})
}

// Settle says what member does with its deliveries. done gets one error per
// settlement (ledger.ErrNotHeld, or nil) when all that was accepted is durable,
// or the reason why it could not be made durable. It may run before Settle returns.
func (s *Subscription) Settle(member string, settlements []ledger.Settlement, done func([]error, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memberLocked(member)
	errs := make([]error, len(settlements))
	var all ledger.Changes
	for i, st := range settlements {
		ch, err := s.l.Settle(m, st)
		errs[i] = err
		all.Deltas = append(all.Deltas, ch.Deltas...)
		all.Dead = append(all.Dead, ch.Dead...)
	}
	s.commitLocked(joined(all), func(err error) { done(errs, err) })
}

// joined merges deltas that continue each other; single accepts are the common case.
func joined(ch ledger.Changes) ledger.Changes {
	out := ch.Deltas[:0]
	for _, d := range ch.Deltas {
		if n := len(out); n > 0 {
			p := &out[n-1]
			if p.Last+1 == d.First && p.State == d.State && p.Count == d.Count && p.Until == d.Until {
				p.Last = d.Last
				continue
			}
		}
		out = append(out, d)
	}
	ch.Deltas = out
	return ch
}

// Count is how often the record at o was delivered, as far as it is between the
// ledger's start and end.
func (s *Subscription) Count(o model.Offset) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.l.DeliveryCount(o)
}

// Leave gives back all that member holds.
func (s *Subscription) Leave(member string, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == member {
		s.active = ""
		s.wakeLocked()
	}
	m, ok := s.members[member]
	if !ok {
		done(nil)
		return
	}
	delete(s.members, member)
	s.commitLocked(s.l.ReleaseMember(m), done)
}

// Delay makes records that nobody was given wait until a time (milliseconds).
func (s *Subscription) Delay(span ledger.Span, until int64, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commitLocked(s.l.Delay(span, until), done)
}

// Reopen makes settled records ready again for this subscription alone (redrive
// without a copy), as far as the log still has them, and tells how many.
func (s *Subscription) Reopen(spans []ledger.Span, done func(error)) (reopened int64) {
	start := s.part.Watermarks().LogStart
	s.mu.Lock()
	defer s.mu.Unlock()
	var all ledger.Changes
	for _, span := range spans {
		span.First = max(span.First, start)
		all.Deltas = append(all.Deltas, s.l.Reopen(span).Deltas...)
	}
	for _, d := range all.Deltas {
		reopened += d.Len()
	}
	s.commitLocked(joined(all), done)
	return reopened
}

// Reset makes the ledger anew with everything below start settled and nothing
// above (AlterShareGroupOffsets).
func (s *Subscription) Reset(start model.Offset, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.l = ledger.New(start, s.cfg.Config)
	s.alarm = 0
	s.seq++
	s.writeSnapshotLocked(s.seq, s.l.Snapshot(), done)
	s.wakeLocked()
}

// Unpark opens the keys that dead records closed, and says how many.
func (s *Subscription) Unpark(done func(error)) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.l.ParkedKeys()
	for _, k := range keys {
		s.l.Unpark(k)
	}
	s.commitLocked(ledger.Changes{}, done)
	return len(keys)
}
