package txn

import (
	"errors"
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
)

// The machine of one transactional id: pure decisions. A method either returns the
// Txn to record, or nil when nothing changes and the command has succeeded
// already, or an error. A Txn in a Prepare state means: record it, write the
// markers, record what complete gives.

// errNeedProducerID asks the caller to decide again with an unused producer id.
var errNeedProducerID = errors.New("a fresh producer id is needed")

// Init is InitProducerId for a transactional id (KIP-98, KIP-360).
type Init struct {
	TimeoutMS int32
	// ExpectedID and ExpectedEpoch are what the producer believes it is, to get its
	// epoch raised; noID and noEpoch from a producer that starts.
	ExpectedID    int64
	ExpectedEpoch int16
	// FreshID is a producer id that nobody has had, or noID.
	FreshID int64
}

func (c Init) expects() bool { return c.ExpectedID != noID }

// init starts a producer: it fences its predecessors. When a transaction is open
// the result is its abort, and the client must ask again.
func (t *Txn) init(c Init, now int64) (*Txn, error) {
	if t.State.Preparing() {
		return nil, errCompleting
	}
	if c.expects() && !t.acceptsExpected(c) {
		return nil, fencedBy(c.ExpectedEpoch, t.Epoch)
	}
	if t.State == Ongoing {
		return t.fence(now), nil
	}
	next := *t
	next.State, next.Parts = Empty, nil
	next.TimeoutMS, next.StartedMS, next.UpdatedMS = c.TimeoutMS, -1, now
	switch {
	case c.expects() && t.Epoch != noEpoch && c.ExpectedEpoch != t.Epoch:
		// A repeat of an init or an end whose answer was lost: same answer again.
	case t.exhausted():
		if c.FreshID == noID {
			return nil, errNeedProducerID
		}
		next.PrevProducerID, next.ProducerID, next.Epoch = t.ProducerID, c.FreshID, 0
		next.LastEpoch = noEpoch
		if c.expects() {
			next.LastEpoch = t.Epoch
		}
	default:
		next.Epoch, next.LastEpoch = t.Epoch+1, noEpoch
		if c.expects() {
			next.LastEpoch = t.Epoch
		}
	}
	return &next, nil
}

// acceptsExpected decides whether the producer that asks for a new epoch is the
// current one (KIP-360): the id may be the one before if its epochs ran out, the
// epoch may be the one before if the answer was lost.
func (t *Txn) acceptsExpected(c Init) bool {
	if t.Epoch == noEpoch {
		return true // the id is new or was forgotten: nobody is fenced by it
	}
	if c.ExpectedID == t.ProducerID {
		return c.ExpectedEpoch == t.Epoch || (c.ExpectedEpoch == t.LastEpoch && t.LastEpoch != noEpoch)
	}
	return c.ExpectedID == t.PrevProducerID && epochExhausted(c.ExpectedEpoch) && c.ExpectedEpoch == t.LastEpoch
}

// fence aborts an open transaction under a raised epoch, which no client is told.
func (t *Txn) fence(now int64) *Txn {
	next := *t
	next.State, next.UpdatedMS = PrepareAbort, now
	next.Epoch, next.LastEpoch = t.Epoch+1, noEpoch
	return &next
}

// checkProducer refuses a producer that does not own the transactional id now.
func (t *Txn) checkProducer(id int64, epoch int16) error {
	switch {
	case t.ProducerID != id:
		return wrongMapping(t.ID, id)
	case t.Epoch != epoch:
		return fencedBy(epoch, t.Epoch)
	case t.State.Preparing():
		return errCompleting
	}
	return nil
}

// add takes partitions into the transaction, and starts it with the first.
func (t *Txn) add(id int64, epoch int16, parts Parts, v Version, now int64) (*Txn, error) {
	if err := t.checkProducer(id, epoch); err != nil {
		return nil, err
	}
	if t.State == Ongoing && t.Parts.Covers(parts) {
		return nil, nil
	}
	next := *t
	if t.State != Ongoing {
		next.State, next.StartedMS, next.Parts = Ongoing, now, nil
		next.LastEpoch = noEpoch // who writes under the new epoch has had its answer
	}
	next.Parts = next.Parts.With(parts)
	next.Version, next.UpdatedMS = v, now
	return &next, nil
}

// verify reports whether a partition may be written to by the open transaction.
func (t *Txn) verify(id int64, epoch int16, topic string, index int32) error {
	if err := t.checkProducer(id, epoch); err != nil {
		return err
	}
	if t.State != Ongoing || !t.Parts.Has(topic, index) {
		return notInTxn(topic, index)
	}
	return nil
}

// End is EndTxn.
type End struct {
	ProducerID int64
	Epoch      int16
	Commit     bool
	Version    Version
	FreshID    int64 // as in Init
}

// end decides on commit or abort. Version 1 keeps the epoch; version 2 raises it,
// and changes the producer id when the epochs are used up (KIP-890).
func (t *Txn) end(c End, now int64) (*Txn, error) {
	if c.Version == V2 {
		return t.endV2(c, now)
	}
	if t.ProducerID != c.ProducerID {
		return nil, wrongMapping(t.ID, c.ProducerID)
	}
	if t.Epoch != c.Epoch {
		return nil, fencedBy(c.Epoch, t.Epoch)
	}
	if t.State == Ongoing {
		next := *t
		next.State, next.Version, next.UpdatedMS = prepared(c.Commit), V1, now
		return &next, nil
	}
	return nil, t.endedAs(c.Commit)
}

func (t *Txn) endV2(c End, now int64) (*Txn, error) {
	if t.isRepeatedEnd(c) {
		return nil, t.endedAs(c.Commit)
	}
	if t.ProducerID != c.ProducerID {
		return nil, wrongMapping(t.ID, c.ProducerID)
	}
	if t.Epoch != c.Epoch || t.State.Preparing() {
		return nil, fencedBy(c.Epoch, t.Epoch)
	}
	if t.State != Ongoing && c.Commit {
		return nil, t.badState("commit")
	}
	if t.exhausted() && c.FreshID == noID {
		return nil, errNeedProducerID
	}
	next := *t
	next.State, next.Version, next.UpdatedMS = prepared(c.Commit), V2, now
	next.Epoch, next.LastEpoch = t.Epoch+1, t.Epoch
	if t.exhausted() {
		next.NextProducerID = c.FreshID
	}
	if t.State != Ongoing { // an abort without a write still raises the epoch
		next.StartedMS, next.Parts = now, nil
	}
	return &next, nil
}

// isRepeatedEnd recognises an end whose answer was lost: it comes with the epoch
// that the end itself put out of use. A fencing leaves LastEpoch at noEpoch, so
// that the producer it hit is told so.
func (t *Txn) isRepeatedEnd(c End) bool {
	if t.State == Ongoing || t.State == Empty || t.LastEpoch != c.Epoch || c.Epoch == noEpoch {
		return false
	}
	if t.ProducerID == c.ProducerID {
		return t.Epoch == c.Epoch+1
	}
	return t.PrevProducerID == c.ProducerID && epochExhausted(c.Epoch) && t.Epoch == 0
}

// endedAs answers an end of a transaction whose end is decided.
func (t *Txn) endedAs(commit bool) error {
	switch {
	case t.State == prepared(commit):
		return errCompleting
	case t.State == completed(commit):
		return nil
	case commit:
		return t.badState("commit")
	}
	return t.badState("abort")
}

func prepared(commit bool) State {
	if commit {
		return PrepareCommit
	}
	return PrepareAbort
}

func completed(commit bool) State {
	if commit {
		return CompleteCommit
	}
	return CompleteAbort
}

// complete is the state after all markers are written.
func (t *Txn) complete(now int64) *Txn {
	next := *t
	next.State = completed(t.State == PrepareCommit)
	next.Parts, next.UpdatedMS = nil, now
	if t.NextProducerID != noID {
		next.PrevProducerID, next.ProducerID, next.Epoch = t.ProducerID, t.NextProducerID, 0
		next.NextProducerID = noID
	}
	return &next
}

var errCompleting = model.Err(model.ClassConcurrentTxn, "the previous transaction of this transactional id is being completed; retry")

func wrongMapping(id string, producer int64) error {
	return model.Err(model.ClassProducerMapping, fmt.Sprintf("transactional id %q does not belong to producer %d; call InitProducerId", id, producer))
}

func fencedBy(epoch, current int16) error {
	return model.Err(model.ClassFenced, fmt.Sprintf("producer epoch %d is over, the current one is %d; another producer with this transactional id took over, or the transaction timed out", epoch, current))
}

func notInTxn(topic string, index int32) error {
	return model.Err(model.ClassNotInTxn, fmt.Sprintf("partition %s-%d is not part of an open transaction of this producer; abort and begin again", topic, index))
}

func (t *Txn) badState(what string) error {
	return model.Err(model.ClassTxnState, fmt.Sprintf("cannot %s: the transaction is in state %s", what, t.State))
}
