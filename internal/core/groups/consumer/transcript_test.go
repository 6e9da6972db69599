package consumer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/model"
)

// script runs a group by the lines of a transcript. Partitions are written
// topic:index+index.
type script struct {
	g       *Group
	classic *classic.Group // instead of g, before and after a migration
	now     time.Time
	topics  map[string]int32
	ts      *Topics
	max     int
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{g: New("g"), now: time.Unix(1_700_000_000, 0), topics: map[string]int32{}, max: 100}
		s.retopic()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			s.run(t, d, &out)
			if s.g != nil {
				fmt.Fprintf(&out, "[%s epoch=%d target=%d members=%d]\n", s.g.State(), s.g.epoch, s.g.assignmentEpoch, s.g.Size())
			} else {
				fmt.Fprintf(&out, "[classic %v gen=%d members=%d]\n", s.classic.State(), s.classic.Generation(), s.classic.Size())
			}
			return out.String()
		})
	})
}

func topicID(name string) (id model.TopicID) {
	copy(id[:], name)
	return id
}

func (s *script) retopic() {
	version := uint64(1)
	if s.ts != nil {
		version = s.ts.Version + 1
	}
	var ts []Topic
	for name, n := range s.topics {
		ts = append(ts, Topic{Name: name, ID: topicID(name), Partitions: n})
	}
	s.ts = NewTopics(version, ts)
}

func (s *script) show(ps Partitions) string {
	var out []string
	for _, id := range ps.Topics() {
		var idx []string
		for _, p := range ps[id] {
			idx = append(idx, fmt.Sprint(p))
		}
		out = append(out, strings.TrimRight(string(id[:]), "\x00")+":"+strings.Join(idx, "+"))
	}
	return "{" + strings.Join(out, " ") + "}"
}

func partitions(vals []string) Partitions {
	m := map[model.TopicID][]int32{}
	for _, v := range vals {
		name, idx, _ := strings.Cut(v, ":")
		for _, i := range strings.Split(idx, "+") {
			var p int32
			if _, err := fmt.Sscan(i, &p); err == nil {
				m[topicID(name)] = append(m[topicID(name)], p)
			}
		}
	}
	return Clean(m)
}

func get(d *datadriven.TestData, key string) (vals []string, ok bool) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals, true
		}
	}
	return nil, false
}

func one(d *datadriven.TestData, key, or string) string {
	if v, ok := get(d, key); ok {
		return strings.Join(v, ",")
	}
	return or
}

func number(t *testing.T, v string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(v, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *script) run(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	id := one(d, "id", "")
	switch d.Cmd {
	case "topics":
		for _, a := range d.CmdArgs {
			if len(a.Vals) == 0 {
				delete(s.topics, a.Key)
				continue
			}
			s.topics[a.Key] = int32(number(t, a.Vals[0]))
		}
		s.retopic()
	case "config":
		s.max = number(t, one(d, "max", "100"))
	case "hb":
		s.heartbeat(t, d, out)
	case "tick":
		s.tick(t, d, out)
	case "commit":
		fmt.Fprintln(out, name(s.g.CheckCommit(id, one(d, "instance", ""), int32(number(t, one(d, "epoch", "-1"))))))
	case "fetch":
		fmt.Fprintln(out, name(s.g.CheckFetch(id, int32(number(t, one(d, "epoch", "-1"))))))
	case "describe":
		for _, m := range s.g.Describe().Members {
			fmt.Fprintf(out, "%s instance=%q epoch=%d/%d state=%d has=%s revoking=%s target=%s classic=%v\n", m.ID, m.Instance,
				m.Epoch, m.Previous, m.State, s.show(m.Assigned), s.show(m.Revoking), s.show(m.Target), m.Classic != nil)
		}
	default:
		s.runClassic(t, d, out)
	}
}

func (s *script) heartbeat(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	in := Heartbeat{
		Limits:   Limits{Session: 45 * time.Second, Interval: 5 * time.Second, MaxSize: s.max},
		MemberID: one(d, "id", ""), Epoch: int32(number(t, one(d, "epoch", "0"))), Instance: one(d, "instance", ""),
		ClientID: "c", ClientHost: "/1.1.1.1", Assignor: one(d, "assignor", ""), Rebalance: -1,
	}
	if in.Epoch == 0 && !d.HasArg("bare") {
		in.Rebalance, in.Owned = 30*time.Second, Partitions{}
	}
	if v, ok := get(d, "topics"); ok {
		in.Topics = v
	}
	if v, ok := get(d, "pattern"); ok {
		p := strings.Join(v, ",")
		in.Pattern = &p
	}
	if v, ok := get(d, "owned"); ok {
		in.Owned = partitions(v)
	}
	r, fx := s.g.Heartbeat(s.now, in, s.ts)
	s.effects(t, out, fx)
	if r.Reason != refusal.None {
		fmt.Fprintf(out, "refused: %s\n", r.Detail)
		return
	}
	fmt.Fprintf(out, "%s epoch=%d", r.MemberID, r.Epoch)
	if r.Assignment != nil {
		fmt.Fprintf(out, " assignment=%s", s.show(r.Assignment))
	}
	fmt.Fprintln(out)
	if d.HasArg("lost") { // it could not be stored
		s.g.Undo(fx)
	}
}

func (s *script) tick(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	step, err := time.ParseDuration(one(d, "time", "0s"))
	if err != nil {
		t.Fatal(err)
	}
	end := s.now.Add(step)
	for s.g != nil {
		w := s.g.Wake()
		if w.IsZero() || w.After(end) {
			break
		}
		s.now = w
		s.effects(t, out, s.g.Tick(s.now, s.ts))
		if s.g != nil && !s.g.Wake().IsZero() && !s.g.Wake().After(s.now) {
			t.Fatal("the group asks for the same time again")
		}
	}
	s.now = end
}

// runClassic has the commands of members of the classic protocol, and of groups
// that migrate.
func (s *script) runClassic(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	id := one(d, "id", "")
	switch d.Cmd {
	case "restart":
		g := New("g")
		for _, c := range s.g.Sum() {
			g.Replay(c)
		}
		g.Resume(s.now, 45*time.Second)
		s.g = g
	case "classic": // a group of the classic protocol
		s.g, s.classic = nil, s.makeClassic(d)
	case "upgrade":
		g, fx, ok := FromClassic(s.now, s.classic, s.ts)
		fmt.Fprintln(out, ok)
		if ok {
			s.g = g
			s.effects(t, out, fx)
		}
	case "join":
		j := classic.Join{
			Limits:   classic.Limits{SessionTimeoutMax: time.Minute},
			MemberID: id, InstanceID: one(d, "instance", ""), FreshID: one(d, "fresh", "new"), ClientID: "c", ClientHost: "/1.1.1.1",
			Session: 10 * time.Second, Rebalance: 30 * time.Second, ProtocolType: one(d, "type", "consumer"), RequireKnownID: d.HasArg("v4"),
			Protocols: []classic.Protocol{{Name: one(d, "protocol", "range"), Metadata: s.metadata(d)}},
		}
		r, fx := s.g.Join(s.now, j, s.max, s.ts)
		s.effects(t, out, fx)
		fmt.Fprintf(out, "%s id=%s gen=%d\n", name(r.Reason), r.MemberID, r.Generation)
	case "sync":
		r := s.g.Sync(s.now, classic.Sync{MemberID: id, InstanceID: one(d, "instance", ""), Generation: int32(number(t, one(d, "gen", "0")))}, s.ts)
		fmt.Fprintf(out, "%s %s\n", name(r.Reason), s.show(assignmentOf(r.Assignment, s.ts)))
	case "chb":
		fmt.Fprintln(out, name(s.g.ClassicHeartbeat(s.now, id, one(d, "instance", ""), int32(number(t, one(d, "gen", "0"))))))
	case "leave":
		why, fx := s.g.Leave([]classic.Leaver{{MemberID: id, InstanceID: one(d, "instance", "")}}, s.ts)
		fmt.Fprintln(out, name(why[0]))
		s.effects(t, out, fx)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}

// metadata is a classic subscription to topics, owning what owned says.
func (s *script) metadata(d *datadriven.TestData) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version = 1
	m.Topics, _ = get(d, "topics")
	if v, ok := get(d, "owned"); ok {
		owned := partitions(v)
		for _, id := range owned.Topics() {
			m.OwnedPartitions = append(m.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: s.ts.Name(id), Partitions: owned[id]})
		}
	}
	return m.AppendTo(nil)
}

// makeClassic settles a classic group of two members that share topic t.
func (s *script) makeClassic(d *datadriven.TestData) *classic.Group {
	saved := classic.Saved{ProtocolType: one(d, "type", "consumer"), Generation: 7, Protocol: "range", Leader: "old-1", Since: s.now}
	for i, id := range []string{"old-1", "old-2"} {
		a := kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{int32(2 * i), int32(2*i + 1)}}}}
		m := kmsg.NewConsumerMemberMetadata()
		m.Topics = []string{"t"}
		saved.Members = append(saved.Members, classic.SavedMember{
			ID: id, ClientID: "c", ClientHost: "/1.1.1.1", Rebalance: 30 * time.Second, Session: 10 * time.Second,
			Subscription: m.AppendTo(nil), Assignment: a.AppendTo(nil),
		})
	}
	return classic.Restore("g", saved, s.now)
}

func name(r refusal.Reason) string {
	if r == refusal.None {
		return "ok"
	}
	return "refused: " + r.Error()
}

func (s *script) effects(t *testing.T, out *strings.Builder, fx Effects) {
	for _, r := range fx.Started {
		fmt.Fprintf(out, "rebalance: %s by %q\n", r.Cause, r.MemberID)
	}
	for _, r := range fx.Gone {
		fmt.Fprintf(out, "gone: %q %s\n", r.MemberID, r.Cause)
	}
	var kinds []string
	for _, c := range fx.Changes {
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", c), "consumer."))
	}
	if len(kinds) > 0 {
		fmt.Fprintf(out, "stores %s\n", strings.Join(slices.Compact(kinds), " "))
	}
	if fx.Downgrade {
		g, cfx := s.g.ToClassic(s.now, s.ts)
		fmt.Fprintf(out, "becomes classic, generation %d, rebalance: %s\n", cfx.Save.Generation, cfx.Started[0].Cause)
		s.g, s.classic = nil, g
	}
}
