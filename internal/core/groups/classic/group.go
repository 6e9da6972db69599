// Package classic is the machine of one group of the classic protocol (JoinGroup,
// SyncGroup, Heartbeat, LeaveGroup; KIP-62, KIP-134, KIP-345, KIP-394, KIP-814).
// It is pure: commands and the time go in, replies, images to store and events
// come out. It starts no goroutine, reads no clock and takes no lock; its owner
// does, stores the images in order and reports back with Stored. It keeps no
// offsets and knows no wire format beyond the consumers' subscription.
package classic

import (
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// Invariants:
//   - the generation only grows, by one for each completed join phase;
//   - a ticket is answered exactly once;
//   - assignments are shown only after the image that holds them is stored;
//   - in CompletingRebalance and Stable every member is of the current generation;
//   - statics maps each instance id to the one member that holds it.

// State is the state of a group, by the names that Kafka's tools print.
type State uint8

// The states. A group that is deleted is Dead; its owner then forgets it.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

var stateNames = [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

// String gives Kafka's name.
func (s State) String() string { return stateNames[s] }

// Limits bound a group; every join brings those of its time.
type Limits struct {
	SessionTimeoutMin     time.Duration // group.min.session.timeout.ms
	SessionTimeoutMax     time.Duration // group.max.session.timeout.ms
	InitialRebalanceDelay time.Duration // group.initial.rebalance.delay.ms
	NewMemberTimeout      time.Duration // how long a first join may be parked
	MaxSize               int           // group.max.size
}

// Ticket names a parked request; its owner finds the client by it.
type Ticket uint64

// Protocol is one assignment strategy that a member offers, with its metadata.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Group is one group. It is not safe for concurrent use: its owner locks it.
type Group struct {
	id string

	state        State
	since        time.Time // when the state was entered
	protocolType string
	generation   int32
	protocol     string
	leader       string

	members map[string]*member
	order   []*member            // members, by arrival: what makes the machine deterministic
	statics map[string]*member   // by instance id
	pending map[string]time.Time // ids given out by MemberIDRequired, until when

	subscribed map[string]bool // topics of the current generation; nil: not known

	joinDeadline time.Time     // PreparingRebalance: when to stop waiting
	delay        time.Duration // the initial rebalance delay
	initial      bool          // the group was Empty: more members are waited for
	initialLeft  time.Duration // how much longer the initial delay may be extended
	newMember    bool          // somebody joined during the initial delay
	syncDeadline time.Time     // when members that did not sync are removed
	unsynced     map[string]bool
	restart      bool // an assignment could not be stored: rebalance at the next Tick

	wake      time.Time // nothing happens by time alone before this; zero: never
	saves     uint64    // numbers the images
	unsaved   bool      // nothing of the group was ever stored
	assigning *assigning
	replacing []replacing
}

type member struct {
	id, instance         string
	clientID, clientHost string
	session, rebalance   time.Duration
	protocols            []Protocol
	assignment           []byte

	deadline time.Time // end of the session; zero while a parked request stands for it
	isNew    bool      // has not completed a join yet
	join     Ticket    // parked JoinGroup, 0: none
	sync     Ticket    // parked SyncGroup, 0: none
}

// assigning is an assignment that is being stored.
type assigning struct {
	save        uint64
	generation  int32
	assignments map[string][]byte
}

// replacing is a static member's takeover that is being stored.
type replacing struct {
	save   uint64
	ticket Ticket
	reply  JoinReply
}

// New makes an empty group of which nothing is stored.
func New(id string, now time.Time) *Group {
	return &Group{
		id: id, since: now, unsaved: true,
		members: map[string]*member{}, statics: map[string]*member{},
		pending: map[string]time.Time{}, unsynced: map[string]bool{},
	}
}

// JoinReply answers the JoinGroup parked under To.
type JoinReply struct {
	To             Ticket
	Reason         refusal.Reason
	MemberID       string
	Generation     int32
	ProtocolType   string
	Protocol       string
	Leader         string
	SkipAssignment bool
	Members        []JoinMember // for the leader only
}

// JoinMember is a member as the leader sees it.
type JoinMember struct {
	ID, Instance string
	Metadata     []byte
}

// SyncReply answers the SyncGroup parked under To.
type SyncReply struct {
	To           Ticket
	Reason       refusal.Reason
	ProtocolType string
	Protocol     string
	Assignment   []byte
}

// Effects is what a command brought about. The owner sends the replies, appends
// Save, if there is one, in the order of the commands, and logs the events.
type Effects struct {
	Joins   []JoinReply
	Syncs   []SyncReply
	Save    *Saved
	Started []Rebalance // rebalances that began
	Settled *Rebalance  // a rebalance that ended with a generation all have joined
	Gone    []Departure // members that left or were removed
}

// State, Generation, ProtocolType, Protocol, Leader and Since describe the group.
func (g *Group) State() State { return g.state }

// Generation is -1 for no group; the first join phase makes it 1.
func (g *Group) Generation() int32 { return g.generation }

// ProtocolType is "consumer" for consumers, "" when no member ever joined.
func (g *Group) ProtocolType() string { return g.protocolType }

// Since is when the state was entered.
func (g *Group) Since() time.Time { return g.since }

// Size counts the members.
func (g *Group) Size() int { return len(g.members) }

// Wake is the time at which Tick is due next; zero: not until another command.
func (g *Group) Wake() time.Time { return g.wake }

// Idle says that the group holds nothing worth keeping: no members, none
// expected, nothing stored.
func (g *Group) Idle() bool {
	return g.state == Empty && g.unsaved && len(g.members) == 0 && len(g.pending) == 0
}

// Deletable says that there are no members, and none are expected.
func (g *Group) Deletable() bool { return g.state == Empty && len(g.pending) == 0 }

func (g *Group) enter(s State, now time.Time) {
	g.state, g.since = s, now
}

func (g *Group) wakeBy(t time.Time) {
	if !t.IsZero() && (g.wake.IsZero() || t.Before(g.wake)) {
		g.wake = t
	}
}

// arm restarts m's session.
func (g *Group) arm(m *member, now time.Time) {
	m.deadline = now.Add(m.session)
	g.wakeBy(m.deadline)
}

// check finds the member that a request names, or says why it may not speak.
func (g *Group) check(id, instance string) (*member, refusal.Reason) {
	if instance != "" {
		m := g.statics[instance]
		if m == nil {
			return nil, refusal.UnknownMember
		}
		if m.id != id {
			return nil, refusal.FencedInstance
		}
		return m, refusal.None
	}
	m := g.members[id]
	if m == nil {
		return nil, refusal.UnknownMember
	}
	return m, refusal.None
}

func (g *Group) add(m *member) {
	if len(g.members) == 0 {
		g.leader = m.id
	}
	g.members[m.id] = m
	g.order = append(g.order, m)
	if m.instance != "" {
		g.statics[m.instance] = m
	}
	delete(g.pending, m.id)
}

// drop takes m out and answers what it has parked.
func (g *Group) drop(m *member, fx *Effects) {
	fx.fence(m, refusal.UnknownMember)
	delete(g.members, m.id)
	delete(g.unsynced, m.id)
	for i, o := range g.order {
		if o == m {
			g.order = append(g.order[:i:i], g.order[i+1:]...)
			break
		}
	}
	if m.instance != "" && g.statics[m.instance] == m {
		delete(g.statics, m.instance)
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0].id
		}
	}
}

// fence answers what m has parked with why.
func (fx *Effects) fence(m *member, why refusal.Reason) {
	if m.join != 0 {
		id := m.id
		if why == refusal.UnknownMember {
			id = ""
		}
		fx.Joins = append(fx.Joins, JoinReply{To: m.join, Reason: why, MemberID: id, Generation: -1})
		m.join = 0
	}
	fx.failSync(m, why)
}

func (fx *Effects) failSync(m *member, why refusal.Reason) {
	if m.sync != 0 {
		fx.Syncs = append(fx.Syncs, SyncReply{To: m.sync, Reason: why})
		m.sync = 0
	}
}

func (g *Group) rebalanceTimeout() time.Duration {
	var d time.Duration
	for _, m := range g.order {
		d = max(d, m.rebalance)
	}
	return d
}
