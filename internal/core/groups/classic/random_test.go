package classic

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

var seed = flag.Uint64("seed", 0, "run only this seed")

// TestRandomCommands runs random clients, some of which misbehave, against a group
// and checks what must always hold.
func TestRandomCommands(t *testing.T) {
	if *seed != 0 {
		newWorld(t, *seed).run(2000)
		return
	}
	for s := uint64(1); s <= 400; s++ {
		newWorld(t, s).run(300)
		if t.Failed() {
			t.Fatalf("again: go test ./internal/core/groups/classic -run TestRandomCommands -seed=%d", s)
		}
	}
}

// world is a group and its clients.
type world struct {
	t      *testing.T
	rnd    *rand.Rand
	cfg    Limits
	g      *Group
	now    time.Time
	ticket Ticket
	fresh  int

	clients []*client
	asked   map[Ticket]ask // parked or not yet answered
	saves   []*Saved
	durable *Saved

	generation int32
	owners     map[int32]map[string]string // generation → partition → member
	assigned   map[int32]map[string]string // generation → member → assignment, as given by the leader
}

// client is one consumer, as it knows itself.
type client struct {
	id, instance string
	generation   int32
	leader       bool
	roster       []string
	pending      int // requests without an answer; now and then it sends another one
	topics       string
}

// ask is a request, and who its client was when it sent it.
type ask struct {
	c          *client
	id         string
	generation int32
}

// ask notes a request, unless the client rather waits.
func (w *world) ask(c *client) bool {
	if c.pending > 0 && w.rnd.IntN(8) > 0 {
		return false
	}
	c.pending++
	w.ticket++
	w.asked[w.ticket] = ask{c, c.id, c.generation}
	return true
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_700_000_000, 0),
		cfg:   Limits{SessionTimeoutMin: time.Second, SessionTimeoutMax: time.Minute, NewMemberTimeout: time.Minute, MaxSize: 4},
		asked: map[Ticket]ask{}, owners: map[int32]map[string]string{}, assigned: map[int32]map[string]string{},
	}
	if seed%3 == 0 {
		w.cfg.InitialRebalanceDelay = 3 * time.Second
	}
	w.g = New("g", w.now)
	for i := range 6 {
		c := &client{topics: "t"}
		if i%2 == 1 {
			c.instance = fmt.Sprintf("i%d", i/2) // two pairs share... one id each, and i=5 its own
		}
		w.clients = append(w.clients, c)
	}
	w.clients[3].instance = w.clients[1].instance // two clients fight over one instance id
	return w
}

func (w *world) errorf(format string, args ...any) { w.t.Helper(); w.t.Errorf(format, args...) }

func (w *world) run(steps int) {
	for range steps {
		w.step()
		w.check()
		if w.t.Failed() {
			return
		}
	}
	for len(w.saves) > 0 {
		w.stored(true)
	}
	w.apply(w.g.Kill(w.now, refusal.CoordinatorNotAvailable))
	if len(w.asked) > 0 {
		w.errorf("%d requests were never answered", len(w.asked))
	}
}

func (w *world) step() {
	c := w.clients[w.rnd.IntN(len(w.clients))]
	switch n := w.rnd.IntN(20); {
	case n < 6:
		w.join(c)
	case n < 11:
		w.sync(c)
	case n < 13:
		w.g.Heartbeat(w.now, c.id, c.instance, c.generation)
	case n == 13:
		_, fx := w.g.Leave(w.now, []Leaver{{MemberID: c.id, InstanceID: c.instance}})
		w.apply(fx)
	case n == 14:
		w.g.CheckCommit(w.now, c.id, c.instance, c.generation, w.rnd.IntN(2) == 0)
	case n == 15:
		if c.pending == 0 {
			c.id, c.leader = "", false // it restarts
		}
	case n == 16:
		c.topics = []string{"t", "u", "t+u"}[w.rnd.IntN(3)]
	case n < 19:
		w.pass(time.Duration(w.rnd.IntN(8000)) * time.Millisecond)
	default:
		w.stored(w.rnd.IntN(4) > 0)
	}
	if w.rnd.IntN(3) > 0 {
		w.stored(true)
	}
	if w.rnd.IntN(100) == 0 && w.durable != nil && len(w.saves) == 0 {
		w.restart()
	}
}

func (w *world) join(c *client) {
	if !w.ask(c) {
		return
	}
	w.fresh++
	protocols := []Protocol{{"range", subscription(c.topics)}, {"sticky", subscription(c.topics)}}
	if w.rnd.IntN(2) == 0 {
		slices.Reverse(protocols)
	}
	if w.rnd.IntN(15) == 0 {
		protocols = protocols[:1]
	}
	w.apply(w.g.Join(w.now, Join{
		Limits: w.cfg, Ticket: w.ticket, MemberID: c.id, InstanceID: c.instance, ClientID: "c", ClientHost: "h",
		Session: 5 * time.Second, Rebalance: 8 * time.Second, ProtocolType: "consumer", Protocols: protocols,
		FreshID: fmt.Sprintf("m%d", w.fresh), RequireKnownID: w.rnd.IntN(2) == 0, CanSkipAssignment: w.rnd.IntN(2) == 0,
	}))
}

func (w *world) sync(c *client) {
	if c.id == "" || !w.ask(c) {
		return
	}
	y := Sync{Ticket: w.ticket, MemberID: c.id, InstanceID: c.instance, Generation: c.generation}
	if c.leader && c.generation == w.g.Generation() && w.assigned[c.generation] == nil {
		y.Assignments = map[string][]byte{}
		for i, m := range c.roster {
			y.Assignments[m] = fmt.Appendf(nil, "p%d", i)
		}
	}
	w.apply(w.g.Sync(w.now, y))
}

func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for {
		next := w.g.Wake()
		if next.IsZero() || next.After(end) {
			break
		}
		if next.After(w.now) {
			w.now = next
		}
		w.apply(w.g.Tick(w.now))
		if again := w.g.Wake(); !again.IsZero() && !again.After(w.now) {
			w.errorf("Tick at %v asks for %v again", w.now, again)
			return
		}
	}
	w.now = end
}

func (w *world) stored(ok bool) {
	if len(w.saves) == 0 {
		return
	}
	s := w.saves[0]
	w.saves = w.saves[1:]
	if ok {
		w.durable = s
	}
	w.apply(w.g.Stored(w.now, s.Number, ok))
}

// restart makes the group anew from what is durable, as a start of the broker does.
func (w *world) restart() {
	w.apply(w.g.Kill(w.now, refusal.CoordinatorNotAvailable))
	w.g = Restore("g", *w.durable, w.now)
	w.generation = w.g.Generation()
	for gen := range w.owners {
		if gen > w.generation { // never stored: it did not happen
			delete(w.owners, gen)
		}
	}
	for gen := range w.assigned {
		if gen > w.generation {
			delete(w.assigned, gen)
		}
	}
}

func (w *world) answered(to Ticket) (ask, bool) {
	a, ok := w.asked[to]
	if !ok {
		w.errorf("ticket %d is answered twice, or was never asked", to)
		return a, false
	}
	delete(w.asked, to)
	a.c.pending--
	return a, true
}

func (w *world) apply(fx Effects) {
	if fx.Save != nil {
		w.saves = append(w.saves, fx.Save)
		w.note(fx.Save)
	}
	for _, r := range fx.Joins {
		a, ok := w.answered(r.To)
		if !ok {
			return
		}
		c := a.c
		switch r.Reason {
		case refusal.None:
			c.id, c.generation, c.leader = r.MemberID, r.Generation, len(r.Members) > 0 && !r.SkipAssignment
			c.roster = nil
			for _, m := range r.Members {
				c.roster = append(c.roster, m.ID)
			}
		case refusal.MemberIDRequired:
			c.id = r.MemberID
		case refusal.UnknownMember, refusal.FencedInstance:
			c.id = ""
		}
	}
	for _, r := range fx.Syncs {
		if a, ok := w.answered(r.To); ok && r.Reason == refusal.None {
			w.own(a, string(r.Assignment))
		}
	}
}

// note takes down what the leader of a generation has assigned.
func (w *world) note(s *Saved) {
	if len(s.Members) == 0 {
		return
	}
	if w.assigned[s.Generation] == nil {
		w.assigned[s.Generation] = map[string]string{}
	}
	for _, m := range s.Members {
		w.assigned[s.Generation][m.ID] = string(m.Assignment)
	}
}

// own checks that nobody else has the partition in this generation. A static
// member's successor may.
func (w *world) own(a ask, assignment string) {
	if w.durable == nil || w.durable.Generation != a.generation {
		w.errorf("generation %d is shown, but not stored", a.generation)
	}
	if want := w.assigned[a.generation][a.id]; want != assignment {
		w.errorf("%s is told %q in generation %d, the leader said %q", a.id, assignment, a.generation, want)
	}
	for _, p := range strings.Fields(assignment) {
		if w.owners[a.generation] == nil {
			w.owners[a.generation] = map[string]string{}
		}
		name := a.id
		if a.c.instance != "" {
			name = a.c.instance
		}
		if other, ok := w.owners[a.generation][p]; ok && other != name {
			w.errorf("%s has two owners in generation %d: %s and %s", p, a.generation, other, name)
		}
		w.owners[a.generation][p] = name
	}
}

// check holds the invariants of group.go.
func (w *world) check() {
	g := w.g
	if g.generation < w.generation {
		w.errorf("generation went from %d to %d", w.generation, g.generation)
	}
	w.generation = g.generation
	if len(g.order) != len(g.members) {
		w.errorf("%d members in order, %d by id", len(g.order), len(g.members))
	}
	statics := 0
	for _, m := range g.order {
		if g.members[m.id] != m {
			w.errorf("%s is in order but not by id", m.id)
		}
		if m.instance != "" {
			statics++
			if g.statics[m.instance] != m {
				w.errorf("%s does not hold its instance id %s", m.id, m.instance)
			}
		}
		if !w.waits(m.join) || !w.waits(m.sync) {
			w.errorf("%s has a ticket that nobody waits for", m.id)
		}
		if m.deadline.IsZero() && m.join == 0 && m.sync == 0 {
			w.errorf("%s has no session and nothing parked", m.id)
		}
	}
	if statics != len(g.statics) {
		w.errorf("%d static members, %d instance ids", statics, len(g.statics))
	}
	if len(g.members) == 0 && (g.state == Stable || g.state == CompletingRebalance) || len(g.members) > 0 && g.state == Empty {
		w.errorf("%v with %d members", g.state, len(g.members))
	}
	if g.state == Stable && len(w.saves) == 0 {
		w.checkReplay()
	}
}

func (w *world) waits(t Ticket) bool {
	_, ok := w.asked[t]
	return ok || t == 0
}

// checkReplay compares the group with what a replay would make of it.
func (w *world) checkReplay() {
	if w.durable == nil {
		w.errorf("stable, but nothing is stored")
		return
	}
	live, again := w.g.Image(), Restore("g", *w.durable, w.now).Image()
	live.Since, again.Since = time.Time{}, time.Time{}
	if !reflect.DeepEqual(live, again) {
		w.errorf("live:   %+v\nreplay: %+v", live, again)
	}
}
