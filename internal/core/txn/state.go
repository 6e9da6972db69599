package txn

import (
	"maps"
	"math"
	"slices"
)

// State is where a transactional id is in its life (Kafka's numbers and names).
type State int8

// The states. PrepareCommit and PrepareAbort mean that the outcome is decided and
// that markers may be missing; only a restart or a failing partition lets them be
// seen. Dead and PrepareEpochFence are never recorded.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
	Dead
	PrepareEpochFence
)

var stateNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// String is the name that ListTransactions shows.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "Unknown"
	}
	return stateNames[s]
}

// ParseState finds a state by its name.
func ParseState(name string) (State, bool) {
	i := slices.Index(stateNames[:], name)
	return State(i), i >= 0
}

// Preparing reports that the outcome is decided and the completion is due.
func (s State) Preparing() bool { return s == PrepareCommit || s == PrepareAbort }

// None stands for "no producer id" and "no epoch".
const (
	noID    int64 = -1
	noEpoch int16 = -1
	// maxEpoch is kept for the coordinator, so that it can always fence; clients
	// get at most maxEpoch-1 (KIP-360).
	maxEpoch int16 = math.MaxInt16
)

// Version is the transactions protocol that a client speaks (the transaction.version
// feature): V1 adds partitions explicitly and keeps its epoch; V2 adds them by
// writing and gets a new epoch with each end (KIP-890).
type Version int16

// The versions, by the numbers that Kafka records.
const (
	V1 Version = 0
	V2 Version = 2
)

// Parts is a set of partitions: topic name to sorted indexes. Values are never
// changed in place once they are part of a Txn.
type Parts map[string][]int32

// Has reports whether the partition is in the set.
func (p Parts) Has(topic string, index int32) bool {
	_, found := slices.BinarySearch(p[topic], index)
	return found
}

// Len counts the partitions.
func (p Parts) Len() (n int) {
	for _, ix := range p {
		n += len(ix)
	}
	return n
}

// Covers reports whether all of q is in p.
func (p Parts) Covers(q Parts) bool {
	for topic, ix := range q {
		for _, i := range ix {
			if !p.Has(topic, i) {
				return false
			}
		}
	}
	return true
}

// With gives the union of p and q; neither is changed.
func (p Parts) With(q Parts) Parts {
	out := maps.Clone(p)
	if out == nil {
		out = make(Parts, len(q))
	}
	for topic, ix := range q {
		all := slices.Concat(out[topic], ix)
		slices.Sort(all)
		out[topic] = slices.Compact(all)
	}
	return out
}

// Topics lists the topics in order.
func (p Parts) Topics() []string { return slices.Sorted(maps.Keys(p)) }

// Txn is everything that is known of one transactional id. It is a value: a
// decision returns a changed copy, and the copy is what is recorded.
//
// Invariants: Parts is empty except in Ongoing and the Prepare states; a client was
// never told an epoch of maxEpoch; NextProducerID is set only in a Prepare state.
type Txn struct {
	ID         string
	ProducerID int64
	Epoch      int16
	// LastEpoch is the epoch before the newest change of it, if a repeat of the
	// request that changed it must be recognised; after a fencing it is noEpoch.
	LastEpoch int16
	// PrevProducerID is the one before the newest change; NextProducerID the one
	// that takes over when the present end completes (epochs used up).
	PrevProducerID, NextProducerID int64

	TimeoutMS int32
	State     State
	Version   Version
	Parts     Parts
	// StartedMS and UpdatedMS are in milliseconds since the epoch; StartedMS is -1
	// outside a transaction.
	StartedMS, UpdatedMS int64
}

// fresh is a transactional id that nobody has used yet.
func fresh(id string, producerID int64) Txn {
	return Txn{ID: id, ProducerID: producerID, Epoch: noEpoch, LastEpoch: noEpoch, PrevProducerID: noID, NextProducerID: noID, StartedMS: -1}
}

// exhausted reports that no further epoch of the producer id may go to a client.
func (t *Txn) exhausted() bool { return epochExhausted(t.Epoch) }

func epochExhausted(e int16) bool { return e >= maxEpoch-1 }

// Expires gives the time from which an Ongoing transaction is aborted, in milliseconds.
func (t *Txn) Expires() int64 { return t.StartedMS + int64(t.TimeoutMS) }
