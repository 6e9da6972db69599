package groups

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/consumer"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
)

// beat sends a heartbeat of the consumer protocol; epoch 0 joins for topic t.
func (n *node) beat(group, member string, epoch int32, owned consumer.Partitions) consumer.Reply {
	in := consumer.Heartbeat{MemberID: member, Epoch: epoch, ClientID: "c", ClientHost: "/127.0.0.1", Rebalance: -1, Owned: owned}
	if epoch == 0 {
		in.Rebalance, in.Topics, in.Owned = 30*time.Second, []string{"t"}, consumer.Partitions{}
	}
	return wait(func(done func(consumer.Reply)) { n.ConsumerHeartbeat(group, in, done) })
}

// held counts the partitions of an assignment.
func held(ps consumer.Partitions) (count int) {
	for _, p := range ps {
		count += len(p)
	}
	return count
}

func TestConsumerGroupSurvivesRestart(t *testing.T) {
	n := newNode(t)
	a := n.beat("g", "a", 0, nil)
	if a.Reason != refusal.None || a.Epoch != 1 || held(a.Assignment) != 4 {
		t.Fatalf("join: %+v", a)
	}
	if b := n.beat("g", "b", 0, nil); b.Epoch != 2 || held(b.Assignment) != 0 {
		t.Fatalf("join: %+v", b)
	}
	a = n.beat("g", "a", 1, a.Assignment)
	before, _, _ := n.DescribeConsumer("g")
	n.crash()
	after, _, _ := n.DescribeConsumer("g")
	if fmt.Sprint(before) != fmt.Sprint(after) { // a set may be nil or empty
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	if a = n.beat("g", "a", 1, a.Assignment); a.Epoch != 2 {
		t.Errorf("a after the restart: %+v", a)
	}
	if b := n.beat("g", "b", 2, nil); b.Epoch != 2 || held(b.Assignment) != 2 {
		t.Errorf("b after the restart: %+v", b)
	}
	n.wantListed(map[string]string{"g": "Stable"})
	if l := n.List()[0]; l.Type != TypeConsumer || l.ProtocolType != "consumer" {
		t.Errorf("listed as %+v", l)
	}
	if _, why := n.Describe("g"); why != refusal.GroupNotFound {
		t.Errorf("described as a classic group: %v", why)
	}
}

func TestConsumerGroupOffsets(t *testing.T) {
	n := newNode(t)
	n.beat("g", "a", 0, nil)
	commit := func(member string, epoch int32) refusal.Reason {
		return n.tryCommit(Commit{Group: "g", MemberID: member, Generation: epoch, Retention: -1, Items: []CommitItem{{Topic: "t", Offset: 3}}}).All
	}
	for _, tc := range []struct {
		member string
		epoch  int32
		want   refusal.Reason
	}{{"a", 1, refusal.None}, {"a", 2, refusal.StaleMemberEpoch}, {"b", 1, refusal.UnknownMember}, {"", -1, refusal.UnknownMember}} {
		if got := commit(tc.member, tc.epoch); got != tc.want {
			t.Errorf("commit of %q in %d: %v, want %v", tc.member, tc.epoch, got, tc.want)
		}
	}
	if _, why := n.Fetch(Fetch{Group: "g", MemberID: "a", MemberEpoch: 7, All: true}); why != refusal.StaleMemberEpoch {
		t.Errorf("fetch: %v", why)
	}
	if why := n.delete("g"); why != refusal.NonEmptyGroup {
		t.Errorf("delete: %v", why)
	}
	res := wait(func(done func(CommitResult)) { n.DeleteOffsets("g", []offsets.Key{{Topic: "t"}}, done) })
	if res.Each[0] != refusal.SubscribedToTopic {
		t.Errorf("delete offsets: %+v", res)
	}
	n.beat("g", "a", -1, nil)
	if why := n.delete("g"); why != refusal.None {
		t.Errorf("delete: %v", why)
	}
	n.crash()
	n.wantListed(nil)
	n.want("g", "t", 0, -1)
}

// TestEmptyGroupsChangeProtocol: an empty group is whatever joins it next; its
// offsets stay.
func TestEmptyGroupsChangeProtocol(t *testing.T) {
	n := newNode(t)
	member, _ := n.settle("g")
	n.tryCommit(Commit{Group: "g", MemberID: member, Generation: 1, Retention: -1, Items: []CommitItem{{Topic: "t", Offset: 3}}})
	n.Leave("g", []classic.Leaver{{MemberID: member}})
	for range 2 {
		if r := n.beat("g", "a", 0, nil); r.Reason != refusal.None || r.Epoch < 1 {
			t.Fatalf("join: %+v", r)
		}
		n.crash()
		if l := n.List(); len(l) != 1 || l[0].Type != TypeConsumer {
			t.Errorf("listed as %+v", l)
		}
		n.want("g", "t", 0, 3)
		n.beat("g", "a", -1, nil)
		m, _ := n.settle("g")
		n.crash()
		if l := n.List(); len(l) != 1 || l[0].Type != TypeClassic {
			t.Errorf("listed as %+v", l)
		}
		n.want("g", "t", 0, 3)
		n.Leave("g", []classic.Leaver{{MemberID: m}})
	}
}

func TestConsumerSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		r := n.beat("g", "a", 0, nil)
		n.commit("h", "t", 0, 1)
		time.Sleep(44 * time.Second)
		if got := n.beat("g", "a", r.Epoch, r.Assignment); got.Reason != refusal.None {
			t.Fatalf("%+v", got)
		}
		time.Sleep(46 * time.Second)
		if got := n.beat("g", "a", r.Epoch, r.Assignment); got.Reason != refusal.UnknownMember {
			t.Errorf("after the session: %+v", got)
		}
		n.wantListed(map[string]string{"g": "Empty", "h": "Empty"})
		time.Sleep(11 * time.Minute) // nothing is left of g
		n.wantListed(map[string]string{"h": "Empty"})
		if s := n.Stats(); s.Rebalances["session expired"] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestManyMembers: a large group comes to rest in one round of heartbeats each.
func TestManyMembers(t *testing.T) {
	n := newNode(t)
	n.createTopic("big", 1000)
	const members = 200
	epochs := map[string]int32{}
	for i := range members {
		id := fmt.Sprint("m", i)
		in := consumer.Heartbeat{MemberID: id, Rebalance: time.Minute, Topics: []string{"big"}, Owned: consumer.Partitions{}}
		r := wait(func(done func(consumer.Reply)) { n.ConsumerHeartbeat("g", in, done) })
		if r.Reason != refusal.None {
			t.Fatal(r.Detail)
		}
		epochs[id] = r.Epoch
	}
	for round := 0; n.listed()["g"] != "Stable"; round++ {
		if round > 3 {
			t.Fatalf("%s after %d rounds", n.listed()["g"], round)
		}
		for id := range epochs {
			r := n.beat("g", id, epochs[id], consumer.Partitions{})
			if r.Reason != refusal.None {
				t.Fatal(r.Detail)
			}
			epochs[id] = r.Epoch
		}
	}
	d, _, _ := n.DescribeConsumer("g")
	for _, m := range d.Members {
		if held(m.Assigned) != 1000/members {
			t.Errorf("%s has %d partitions", m.ID, held(m.Assigned))
		}
	}
}
