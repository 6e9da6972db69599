package classic

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// script runs a group by the lines of a transcript. Tickets are named by the
// clients: a reply says whom it is for.
type script struct {
	g      *Group
	cfg    Limits
	now    time.Time
	ticket Ticket
	who    map[Ticket]string
	saves  []*Saved
	fresh  map[string]int
}

func newScript() *script {
	s := &script{
		cfg: Limits{
			SessionTimeoutMin: time.Second, SessionTimeoutMax: time.Minute,
			NewMemberTimeout: 5 * time.Minute, MaxSize: 100,
		},
		now: time.Unix(1_700_000_000, 0).UTC(), who: map[Ticket]string{}, fresh: map[string]int{},
	}
	s.g = New("g", s.now)
	return s
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			s.run(t, d, &out)
			fmt.Fprintf(&out, "[%v gen=%d members=%d]\n", s.g.State(), s.g.Generation(), s.g.Size())
			return out.String()
		})
	})
}

func arg(d *datadriven.TestData, key, or string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return or
}

func (s *script) duration(t *testing.T, d *datadriven.TestData, key, or string) time.Duration {
	v, err := time.ParseDuration(arg(d, key, or))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s *script) generation(t *testing.T, d *datadriven.TestData) int32 {
	n := s.g.Generation()
	if v := arg(d, "gen", ""); v != "" {
		if _, err := fmt.Sscan(v, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func subscription(topics string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	if topics != "" {
		m.Topics = strings.Split(topics, "+")
	}
	return m.AppendTo(nil)
}

func (s *script) run(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	id := arg(d, "id", "")
	instance := arg(d, "instance", "")
	switch d.Cmd {
	case "config":
		s.cfg.InitialRebalanceDelay = s.duration(t, d, "delay", "0s")
		s.cfg.NewMemberTimeout = s.duration(t, d, "newmember", "5m")
		fmt.Sscan(arg(d, "max", "100"), &s.cfg.MaxSize)
	case "join":
		s.join(t, d, out)
	case "sync":
		s.ticket++
		s.who[s.ticket] = id
		y := Sync{Ticket: s.ticket, MemberID: id, InstanceID: instance, Generation: s.generation(t, d), Assignments: map[string][]byte{}}
		if v := arg(d, "type", ""); v != "" {
			y.ProtocolType = &v
		}
		if v := arg(d, "protocol", ""); v != "" {
			y.Protocol = &v
		}
		for _, line := range strings.Fields(d.Input) {
			who, what, _ := strings.Cut(line, "=")
			y.Assignments[who] = []byte(what)
		}
		s.effects(out, s.g.Sync(s.now, y))
	case "stored", "refused":
		saves := s.saves
		s.saves = nil
		for _, sv := range saves {
			s.effects(out, s.g.Stored(s.now, sv.Number, d.Cmd == "stored"))
		}
	case "heartbeat":
		fmt.Fprintln(out, name(s.g.Heartbeat(s.now, id, instance, s.generation(t, d))))
	case "commit":
		fmt.Fprintln(out, name(s.g.CheckCommit(s.now, id, instance, s.generation(t, d), d.HasArg("txn"))))
	case "leave":
		why, fx := s.g.Leave(s.now, []Leaver{{MemberID: id, InstanceID: instance, Why: arg(d, "why", "")}})
		fmt.Fprintln(out, name(why[0]))
		s.effects(out, fx)
	case "pass":
		s.pass(t, d, out)
	case "restart":
		im := s.g.Image()
		s.g = Restore("g", im, s.now)
	case "kill":
		s.effects(out, s.g.Kill(s.now, refusal.CoordinatorNotAvailable))
	case "subscribed":
		fmt.Fprintln(out, s.g.SubscribedTo(arg(d, "topic", "")))
	case "describe":
		ds := s.g.Describe()
		fmt.Fprintf(out, "%v type=%q protocol=%q leader=%q\n", ds.State, ds.ProtocolType, ds.Protocol, ds.Leader)
		for _, m := range ds.Members {
			fmt.Fprintf(out, "  %s instance=%q client=%s host=%s metadata=%v assignment=%q\n",
				m.ID, m.Instance, m.ClientID, m.ClientHost, m.Metadata != nil, m.Assignment)
		}
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}

func (s *script) join(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	client := arg(d, "client", "c")
	id := arg(d, "id", "")
	s.fresh[client]++
	s.ticket++
	s.who[s.ticket] = client
	if id != "" {
		s.who[s.ticket] = id
		client, _, _ = strings.Cut(id, "-")
	}
	j := Join{
		Limits: s.cfg, Ticket: s.ticket, MemberID: id, InstanceID: arg(d, "instance", ""),
		ClientID: client, ClientHost: arg(d, "host", "/1.1.1.1"),
		Session: s.duration(t, d, "session", "10s"), Rebalance: s.duration(t, d, "rebalance", "30s"),
		ProtocolType: arg(d, "type", "consumer"), Why: arg(d, "why", ""),
		FreshID:        fmt.Sprintf("%s-%d", client, s.fresh[client]),
		RequireKnownID: d.HasArg("v4"), CanSkipAssignment: d.HasArg("v9"),
	}
	for _, p := range strings.Split(arg(d, "protocols", "range"), ",") {
		if p != "none" {
			j.Protocols = append(j.Protocols, Protocol{p, subscription(arg(d, "topics", "t"))})
		}
	}
	s.effects(out, s.g.Join(s.now, j))
}

// pass lets time go by, in the steps that the group asks for.
func (s *script) pass(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	end := s.now.Add(s.duration(t, d, "time", "0s"))
	for {
		w := s.g.Wake()
		if w.IsZero() || w.After(end) {
			break
		}
		if w.After(s.now) {
			s.now = w
		}
		s.effects(out, s.g.Tick(s.now))
		if next := s.g.Wake(); !next.IsZero() && !next.After(s.now) {
			t.Fatalf("the group asks for the same time again: %v", next)
		}
	}
	s.now = end
}

func name(r refusal.Reason) string {
	if r == refusal.None {
		return "ok"
	}
	return r.Error()
}

func (s *script) effects(out *strings.Builder, fx Effects) {
	for _, r := range fx.Started {
		fmt.Fprintf(out, "rebalance: %s by %q %s\n", r.Cause, r.MemberID, r.Why)
	}
	for _, r := range fx.Gone {
		fmt.Fprintf(out, "gone: %q %s %s\n", r.MemberID, r.Cause, r.Why)
	}
	for _, r := range fx.Joins {
		fmt.Fprintf(out, "joined %s: ", s.who[r.To])
		delete(s.who, r.To)
		if r.Reason != refusal.None {
			fmt.Fprintf(out, "%v (id %q)\n", r.Reason, r.MemberID)
			continue
		}
		fmt.Fprintf(out, "id=%s gen=%d protocol=%s leader=%s skip=%v members=", r.MemberID, r.Generation, r.Protocol, r.Leader, r.SkipAssignment)
		for _, m := range r.Members {
			fmt.Fprintf(out, "%s ", m.ID)
		}
		fmt.Fprintln(out)
	}
	for _, r := range fx.Syncs {
		fmt.Fprintf(out, "synced %s: ", s.who[r.To])
		delete(s.who, r.To)
		if r.Reason != refusal.None {
			fmt.Fprintln(out, r.Reason)
			continue
		}
		fmt.Fprintf(out, "%s %s %q\n", r.ProtocolType, r.Protocol, r.Assignment)
	}
	if fx.Save != nil {
		s.saves = append(s.saves, fx.Save)
		fmt.Fprintf(out, "save gen=%d leader=%q", fx.Save.Generation, fx.Save.Leader)
		for _, m := range fx.Save.Members {
			fmt.Fprintf(out, " %s=%q", m.ID, m.Assignment)
		}
		fmt.Fprintln(out)
	}
	if fx.Settled != nil {
		fmt.Fprintf(out, "stable gen=%d\n", fx.Settled.Generation)
	}
}
