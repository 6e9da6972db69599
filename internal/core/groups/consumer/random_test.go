package consumer

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

var seed = flag.Uint64("seed", 0, "run only this seed")

// TestRandomMembers runs random members, some of which restart, fall silent, lose
// answers or are slow, against a group and checks what must always hold.
func TestRandomMembers(t *testing.T) {
	from, to := uint64(1), uint64(100)
	if *seed != 0 {
		from, to = *seed, *seed
	}
	for n := from; n <= to; n++ {
		w := newWorld(t, n)
		w.run(300)
		w.settle()
		if t.Failed() {
			t.Fatalf("again: go test ./internal/core/groups/consumer -run TestRandomMembers -seed=%d", n)
		}
	}
}

// world is a group, a copy of it made of the stored changes, and its members.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	now     time.Time
	g, copy *Group
	topics  map[string]int32
	version uint64
	ts      *Topics
	peers   []*peer
	fresh   int
	epoch   int32
}

// peer is one consumer process, as it knows itself.
type peer struct {
	id, instance string
	epoch        int32
	owned        Partitions
	want         Partitions // the last assignment it was told
	dead         bool
	tellAll      bool // its last answer was lost
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1_700_000_000, 0),
		g: New("g"), copy: New("g"), topics: map[string]int32{"t": 5, "u": 2},
	}
	w.retopic()
	for i := range 5 {
		p := &peer{}
		if i%2 == 1 {
			p.instance = fmt.Sprint("i", i)
		}
		w.rename(p)
		w.peers = append(w.peers, p)
	}
	return w
}

func (w *world) rename(p *peer) {
	w.fresh++
	*p = peer{id: fmt.Sprint("m", w.fresh), instance: p.instance, owned: Partitions{}}
}

func (w *world) retopic() {
	w.version++
	var ts []Topic
	for name, n := range w.topics {
		ts = append(ts, Topic{Name: name, ID: topicID(name), Partitions: n})
	}
	w.ts = NewTopics(w.version, ts)
}

func (w *world) run(steps int) {
	for range steps {
		p := w.peers[w.rnd.IntN(len(w.peers))]
		switch n := w.rnd.IntN(30); {
		case n < 20:
			w.heartbeat(p)
		case n < 24:
			p.reconcile()
		case n == 24:
			w.leave(p)
		case n == 25 && w.rnd.IntN(3) == 0:
			p.dead = true
		case n == 26:
			w.topics["t"] = min(w.topics["t"]+int32(w.rnd.IntN(2)), 9)
			if w.topics["v"]++; w.rnd.IntN(2) == 0 {
				delete(w.topics, "v")
			}
			w.retopic()
		case n == 27:
			w.restart()
		default:
			w.pass(time.Duration(w.rnd.IntN(6000)) * time.Millisecond)
		}
		w.check()
		if w.t.Failed() {
			return
		}
	}
}

// reconcile lets the process do what it was told: first give up, then take.
func (p *peer) reconcile() {
	if p.want == nil {
		return
	}
	if kept := p.owned.and(p.want); !kept.equal(p.owned) {
		p.owned = kept
		return
	}
	p.owned = p.want
}

func (w *world) request(p *peer) Heartbeat {
	in := Heartbeat{
		Limits:   Limits{Session: 20 * time.Second, MaxSize: 4},
		MemberID: p.id, Epoch: p.epoch, Instance: p.instance, ClientID: "c", Rebalance: -1,
	}
	if p.epoch == 0 || p.tellAll {
		in.Rebalance, in.Full = 8*time.Second, true
		in.Topics = [][]string{{"t"}, {"t", "u"}, {"u", "v"}}[len(p.id)%3]
		if p.id[len(p.id)-1]%3 == 0 {
			pat := "t|v"
			in.Pattern = &pat
		}
		in.Assignor = []string{"", "range", "uniform"}[w.rnd.IntN(3)]
	}
	if in.Full || w.rnd.IntN(2) == 0 {
		in.Owned = p.owned
	}
	return in
}

func (w *world) heartbeat(p *peer) {
	if p.dead {
		if w.g.members[p.id] == nil && w.rnd.IntN(4) == 0 {
			w.rename(p) // another process in its place
		}
		return
	}
	if p.epoch == 0 {
		p.owned, p.want = Partitions{}, nil
	}
	r, fx := w.g.Heartbeat(w.now, w.request(p), w.ts)
	if w.rnd.IntN(12) == 0 { // could not be stored
		w.g.Undo(fx)
		return
	}
	w.store(fx)
	if w.rnd.IntN(12) == 0 { // the answer is lost
		// What it was told before and has not taken yet may be another's now: the
		// protocol counts as given up what a member does not say it owns.
		p.tellAll, p.want = true, nil
		return
	}
	switch r.Reason {
	case refusal.None:
		p.epoch, p.tellAll = r.Epoch, false
		if r.Assignment != nil {
			p.want = r.Assignment
		}
	case refusal.UnknownMember, refusal.FencedMemberEpoch, refusal.FencedInstance:
		p.epoch, p.owned, p.want = 0, Partitions{}, nil
		if r.Reason == refusal.FencedInstance {
			w.rename(p)
		}
	case refusal.UnreleasedInstance, refusal.GroupMaxSizeReached:
	default:
		w.t.Errorf("%+v: %v %s", p, r.Reason, r.Detail)
	}
}

func (w *world) leave(p *peer) {
	if p.dead || p.epoch <= 0 {
		return
	}
	p.owned = Partitions{} // it gives up first
	in := Heartbeat{MemberID: p.id, Instance: p.instance, Epoch: EpochLeave}
	if p.instance != "" && w.rnd.IntN(2) == 0 {
		in.Epoch = EpochLeaveStatic
	}
	_, fx := w.g.Heartbeat(w.now, in, w.ts)
	w.store(fx)
	w.rename(p)
}

func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for {
		next := w.g.Wake()
		if next.IsZero() || next.After(end) {
			break
		}
		w.now = next
		w.store(w.g.Tick(w.now, w.ts))
		if again := w.g.Wake(); !again.IsZero() && !again.After(w.now) {
			w.t.Fatal("Tick asks for the same time again")
		}
	}
	w.now = end
}

func (w *world) store(fx Effects) {
	for _, c := range fx.Changes {
		w.copy.Replay(c)
	}
	for _, d := range fx.Gone {
		for _, p := range w.peers { // it may still think that it owns something; it is not asked
			if p.id == d.MemberID {
				p.owned, p.want = Partitions{}, nil
			}
		}
	}
}

// restart is a start of the broker: what is stored is all there is.
func (w *world) restart() {
	g := New("g")
	for _, c := range w.copy.Sum() {
		g.Replay(c)
	}
	g.Resume(w.now, 20*time.Second)
	w.g = g
}

func (w *world) check() {
	g := w.g
	if g.epoch < w.epoch || g.assignmentEpoch > g.epoch {
		w.t.Errorf("epoch %d after %d, target %d", g.epoch, w.epoch, g.assignmentEpoch)
	}
	w.epoch = g.epoch
	holders := map[slot]string{}
	for _, m := range g.members {
		for _, set := range []Partitions{m.Assigned, m.Revoking} {
			for id, ps := range set {
				for _, p := range ps {
					if other, ok := holders[slot{id, p}]; ok {
						w.t.Errorf("%v-%d is held by %s and %s", id, p, other, m.ID)
					}
					holders[slot{id, p}] = m.ID
				}
			}
		}
		if m.Instance != "" && g.statics[m.Instance] != m.ID {
			w.t.Errorf("%s does not hold %s", m.ID, m.Instance)
		}
		if m.State == Unrevoked && m.Epoch >= g.assignmentEpoch {
			w.t.Errorf("%s is Unrevoked in epoch %d, the target is of %d", m.ID, m.Epoch, g.assignmentEpoch)
		}
		for _, at := range []time.Time{g.sessions[m.ID], g.deadline[m.ID]} {
			if !at.IsZero() && (g.wake.IsZero() || g.wake.After(at)) {
				w.t.Errorf("%s is due at %v, the group at %v", m.ID, at, g.wake)
			}
		}
		if g.sessions[m.ID].IsZero() {
			w.t.Errorf("%s has no session", m.ID)
		}
	}
	if !maps.Equal(holders, g.holders) {
		w.t.Errorf("holders %v, by the members %v", g.holders, holders)
	}
	if !reflect.DeepEqual(g.Sum(), w.copy.Sum()) {
		w.t.Errorf("live   %v\nreplay %v", g.Sum(), w.copy.Sum())
	}
	owners := map[slot]*peer{}
	for _, p := range w.peers {
		for id, ps := range p.owned {
			for _, i := range ps {
				if o := owners[slot{id, i}]; o != nil {
					w.t.Errorf("%v-%d is consumed by %s and %s", id, i, o.id, p.id)
				}
				owners[slot{id, i}] = p
			}
		}
	}
}

// settle lets the living heartbeat in turn: the group must come to rest with every
// partition that somebody wants consumed.
func (w *world) settle() {
	for _, p := range w.peers {
		p.dead = p.dead && w.g.members[p.id] != nil
	}
	for range 60 {
		w.pass(time.Second)
		for _, p := range w.peers {
			if p.dead {
				continue
			}
			in := w.request(p)
			in.Owned, in.MaxSize = p.owned, 100
			if p.epoch == 0 {
				in.Owned = Partitions{}
			}
			r, fx := w.g.Heartbeat(w.now, in, w.ts)
			w.store(fx)
			switch r.Reason {
			case refusal.None:
				p.epoch, p.tellAll = r.Epoch, false
				if r.Assignment != nil {
					p.want = r.Assignment
				}
			case refusal.UnreleasedInstance:
			default:
				p.epoch, p.owned, p.want, p.tellAll = 0, Partitions{}, nil, true
			}
			p.reconcile()
			w.check()
		}
	}
	if s := w.g.State(); s != Stable && s != Empty {
		w.t.Errorf("the group does not come to rest: %s", s)
	}
	wanted, consumed := 0, 0
	seen := map[string]bool{}
	for _, m := range w.g.members {
		for _, name := range w.g.topicsOf(m, w.ts) {
			if !seen[name] {
				seen[name] = true
				wanted += int(w.topics[name])
			}
		}
	}
	for _, p := range w.peers {
		for _, ps := range p.owned {
			consumed += len(ps)
		}
	}
	if wanted != consumed {
		w.t.Errorf("%d partitions are wanted (%v), %d consumed", wanted, slices.Collect(maps.Keys(seen)), consumed)
	}
}
