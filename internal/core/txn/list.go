package txn

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// Describe gives the state of one transactional id (KIP-664); false if it is unknown.
func (c *Coordinator) Describe(id string) (Txn, bool) {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.txns[id]
	if e == nil {
		return Txn{}, false
	}
	return e.txn, true
}

// Filter selects transactional ids; an empty filter selects all (KIP-664, KIP-994,
// KIP-1152).
type Filter struct {
	States      []State
	ProducerIDs []int64
	// LongerThanMS selects what began longer ago than this, in milliseconds;
	// negative for no condition.
	LongerThanMS int64
	ID           *regexp.Regexp
}

// List gives the selected transactional ids, by id.
func (c *Coordinator) List(f Filter) []Txn {
	var out []Txn
	now := c.nowMS()
	for _, s := range c.shards {
		s.mu.Lock()
		for _, e := range s.txns {
			if f.selects(&e.txn, now) {
				out = append(out, e.txn)
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b Txn) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (f Filter) selects(t *Txn, now int64) bool {
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, t.State):
		return false
	case len(f.ProducerIDs) > 0 && !slices.Contains(f.ProducerIDs, t.ProducerID):
		return false
	case f.LongerThanMS >= 0 && (t.StartedMS < 0 || now-t.StartedMS <= f.LongerThanMS):
		return false
	}
	return f.ID == nil || f.ID.MatchString(t.ID)
}

// Mark is a marker that somebody outside asks for (WriteTxnMarkers): another
// broker's coordinator, or a tool that ends a hanging transaction.
type Mark struct {
	Ended
	Version          Version
	CoordinatorEpoch int32
}

// WriteMarks writes markers, each for itself, and gives an outcome for each:
// ClassNotFound, ClassFenced. It returns when the accepted ones are durable.
func (c *Coordinator) WriteMarks(ctx context.Context, marks []Mark) []error {
	errs := make([]error, len(marks))
	tickets := make([]*ticket, len(marks))
	for i, m := range marks {
		tickets[i], errs[i] = c.writeMark(m)
	}
	for i, t := range tickets {
		if t != nil {
			errs[i] = t.wait(ctx)
		}
	}
	return errs
}

// ErrCoordinatorFenced refuses markers of a coordinator that is not in office.
var ErrCoordinatorFenced = model.Err(model.ClassFenced, "the coordinator epoch is not one of this broker's; take it from DescribeProducers")

func (c *Coordinator) writeMark(m Mark) (*ticket, error) {
	// A marker from the future would shut this coordinator out of the partition.
	if m.CoordinatorEpoch > c.shards[0].log.Partition().LeaderEpoch() {
		return nil, ErrCoordinatorFenced
	}
	p, ok := c.resolvePartition(m.Topic, m.Index)
	if !ok {
		return nil, model.Err(model.ClassNotFound, "no such partition")
	}
	t := newTicket()
	b := records.MarkerBatch(c.opt.Now(), m.ProducerID, m.Epoch, records.Marker{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch})
	items := []partition.Append{{To: p, Batch: b, Origin: partition.FromCoordinator, TxnV2: m.Version == V2}}
	err := partition.SubmitEssential(items, func(_ []partition.Result, err error) {
		if err == nil {
			c.opt.Ended(m.Ended)
		}
		t.finish(err)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
