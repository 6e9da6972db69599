// Package consumer is the machine of one group of the consumer protocol (KIP-848):
// members heartbeat, the broker assigns, and each member is led to its target
// partition by partition, without stopping the others. Members of the classic
// protocol may be among them while a group migrates. It is pure: commands, the
// time and the topics go in, changes, replies and events come out; its owner
// stores the changes and sends the replies when they are durable. Applying the
// stored changes to an empty group gives the group back.
package consumer

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
)

// Invariants:
//   - a partition has at most one holder: the member that has it assigned, or has
//     not said yet that it gave it up;
//   - an Unrevoked member is behind the target's epoch, which is never ahead of the
//     group's;
//   - no epoch goes back, but for a member that leaves or joins anew;
//   - the group changes by apply only, so that a replay gives the same group.

// MemberState says how far a member is with its target (numbers as Kafka stores them).
type MemberState int8

// The states of a member.
const (
	Settled    MemberState = 1 // it has all that it is to have in its epoch
	Unrevoked  MemberState = 2 // it has to give up partitions first
	Unreleased MemberState = 3 // it waits for partitions that others hold
)

// Epochs by which members leave.
const (
	EpochLeave       = -1
	EpochLeaveStatic = -2 // a static member that will be back
)

// Member is one member. It is not changed once it is made: a change makes another.
type Member struct {
	ID, Instance, Rack   string
	ClientID, ClientHost string
	Rebalance            time.Duration
	Topics               []string // in order
	Pattern              string
	Assignor             string
	Classic              *ClassicMember // not nil: it speaks the classic protocol

	Epoch, Previous    int32
	State              MemberState
	Assigned, Revoking Partitions
}

// ClassicMember is what a member of the classic protocol has on top.
type ClassicMember struct {
	Session   time.Duration
	Protocols []classic.Protocol
}

// Group is one group. Not safe for concurrent use: its owner locks it.
type Group struct {
	id string

	// What is stored; apply changes it.
	epoch, assignmentEpoch int32
	hash                   uint64 // of the topics that it consumes
	members                map[string]*Member
	target                 map[string]Partitions

	// What follows from it.
	statics map[string]string // instance id → member id
	holders map[slot]string   // who holds a partition

	// What is not stored.
	sessions map[string]time.Time // end of each member's session
	deadline map[string]time.Time // until when a member has to revoke, rejoin or sync
	seen     uint64               // version of the topics that hash is of
	matches  matches
	wake     time.Time
}

// New makes an empty group.
func New(id string) *Group {
	return &Group{
		id: id, members: map[string]*Member{}, target: map[string]Partitions{},
		statics: map[string]string{}, holders: map[slot]string{},
		sessions: map[string]time.Time{}, deadline: map[string]time.Time{},
	}
}

// State is the state of the group, by the names that Kafka's tools print.
type State string

// The states.
const (
	Empty       State = "Empty"
	Assigning   State = "Assigning"
	Reconciling State = "Reconciling"
	Stable      State = "Stable"
)

// State tells how far the group is.
func (g *Group) State() State {
	switch {
	case len(g.members) == 0:
		return Empty
	case g.epoch > g.assignmentEpoch:
		return Assigning
	}
	for _, m := range g.members {
		if !m.reconciled(g.assignmentEpoch) {
			return Reconciling
		}
	}
	return Stable
}

func (m *Member) reconciled(epoch int32) bool { return m.State == Settled && m.Epoch == epoch }

// Size counts the members.
func (g *Group) Size() int { return len(g.members) }

// Epoch is the group epoch.
func (g *Group) Epoch() int32 { return g.epoch }

// Wake is the time at which Tick is due next; zero: not until another command.
func (g *Group) Wake() time.Time { return g.wake }

// Idle says that there is nothing of the group: it was never stored.
func (g *Group) Idle() bool { return len(g.members) == 0 && g.epoch == 0 }

func (g *Group) wakeBy(t time.Time) {
	if !t.IsZero() && (g.wake.IsZero() || t.Before(g.wake)) {
		g.wake = t
	}
}

// SubscribedTo reports whether a member consumes topic.
func (g *Group) SubscribedTo(topic string, ts *Topics) bool {
	for _, m := range g.members {
		for _, name := range g.topicsOf(m, ts) {
			if name == topic {
				return true
			}
		}
	}
	return false
}
