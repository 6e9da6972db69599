package groups

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/records"
)

// TestPartitionFor has Kafka's own choices: Java's hashCode of the group id.
func TestPartitionFor(t *testing.T) {
	for id, want := range map[string]int32{
		"":                      0,
		"my-group":              12,
		"polygenelubricants":    0, // hash code is the smallest int
		"console-consumer-1234": partitionFor("console-consumer-1234", 50),
		"größe":                 partitionFor("größe", 50),
	} {
		if got := partitionFor(id, 50); got != want {
			t.Errorf("group %q is in partition %d, want %d", id, got, want)
		}
	}
}

func TestGroupSurvivesRestart(t *testing.T) {
	n := newNode(t)
	member, generation := n.settle("g")
	n.commit("other", "t", 1, 7)
	res := n.tryCommit(Commit{Group: "g", MemberID: member, Generation: generation, Retention: -1, Items: []CommitItem{
		{Topic: "t", Partition: 0, Offset: 42, LeaderEpoch: 3, Metadata: "note"},
	}})
	if res.All != refusal.None {
		t.Fatal(res.All)
	}
	before, _ := n.Debug("g")
	n.crash()
	n.wantListed(map[string]string{"g": "Stable", "other": "Empty"})
	after, _ := n.Debug("g")
	for _, d := range []*Debug{&before, &after} {
		g := d.Group.(classic.Description)
		g.Since = time.Time{}
		d.Group = g
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	n.want("other", "t", 1, 7)
	if why := n.Heartbeat("g", member, "", generation); why != refusal.None {
		t.Errorf("heartbeat after the restart: %v", why)
	}
	got, _ := n.Fetch(Fetch{Group: "g", MemberEpoch: -1, All: true})
	if len(got) != 1 || got[0].Offset.Offset != 42 || got[0].LeaderEpoch != 3 || got[0].Metadata != "note" {
		t.Errorf("offsets after the restart: %+v", got)
	}
}

// TestDeletedGroupStaysGone is row K11 of the reported cases.
func TestDeletedGroupStaysGone(t *testing.T) {
	n := newNode(t)
	member, generation := n.settle("g")
	cm := Commit{Group: "g", MemberID: member, Generation: generation, Retention: -1, Items: []CommitItem{{Topic: "t", Offset: 5}}}
	n.tryCommit(cm)
	if why := n.delete("g"); why != refusal.NonEmptyGroup {
		t.Errorf("deleting a live group: %v", why)
	}
	if each, _ := n.Leave("g", []classic.Leaver{{MemberID: member}}); each[0] != refusal.None {
		t.Fatal(each)
	}
	n.commit("g", "t", 1, 6)
	if why := n.delete("g"); why != refusal.None {
		t.Fatal(why)
	}
	if why := n.delete("g"); why != refusal.GroupNotFound {
		t.Errorf("deleting it again: %v", why)
	}
	for range 2 {
		n.crash()
		n.wantListed(nil)
		n.want("g", "t", 0, -1)
		n.want("g", "t", 1, -1)
		if _, why := n.Describe("g"); why != refusal.GroupNotFound {
			t.Errorf("describe: %v", why)
		}
	}
	n.commit("g", "t", 1, 1) // a new group of the same name
	n.crash()
	n.want("g", "t", 0, -1)
	n.want("g", "t", 1, 1)
}

func TestUnknownGroup(t *testing.T) {
	n := newNode(t)
	n.want("nobody", "t", 0, -1)
	if why := n.Heartbeat("nobody", "m", "", 1); why != refusal.UnknownMember {
		t.Errorf("heartbeat: %v", why)
	}
	if s := wait(func(done func(classic.SyncReply)) { n.Sync("nobody", classic.Sync{MemberID: "m"}, done) }); s.Reason != refusal.UnknownMember {
		t.Errorf("sync: %v", s.Reason)
	}
	if each, all := n.Leave("nobody", make([]classic.Leaver, 2)); all != refusal.None || each[1] != refusal.UnknownMember {
		t.Errorf("leave: %v %v", each, all)
	}
	if r := <-n.join("nobody", "m"); r.Reason != refusal.UnknownMember {
		t.Errorf("join with an id: %v", r.Reason)
	}
	if r := n.tryCommit(Commit{Group: "nobody", Generation: 3}); r.All != refusal.GroupNotFound {
		t.Errorf("commit: %v", r.All)
	}
	if r := <-n.join("", ""); r.Reason != refusal.InvalidGroupID {
		t.Errorf("join without a group id: %v", r.Reason)
	}
	n.wantListed(nil)
}

func TestCommitByItem(t *testing.T) {
	n := newNode(t)
	topic, _ := n.cat.ByName("t")
	long := strings.Repeat("x", 4097)
	res := n.tryCommit(Commit{Group: "g", Generation: -1, Retention: -1, Items: []CommitItem{
		{Topic: "t", Partition: 0, Offset: 1, Metadata: long},
		{Topic: "t", Partition: 1, Offset: 2, Metadata: long[1:]},
		{Topic: "t", Partition: 4, Offset: 3},
		{Topic: "nope", Partition: 0, Offset: 4},
		{TopicID: topic.ID, Partition: 2, Offset: 5, LeaderEpoch: -1},
		{TopicID: [16]byte{1}, Partition: 2, Offset: 6},
	}})
	want := []refusal.Reason{
		refusal.OffsetMetadataTooLarge, refusal.None, refusal.UnknownTopicOrPartition,
		refusal.UnknownTopicOrPartition, refusal.None, refusal.UnknownTopicID,
	}
	if !reflect.DeepEqual(res.Each, want) {
		t.Errorf("got %v\nwant %v", res.Each, want)
	}
	for p, offset := range []int64{-1, 2, 5, -1} {
		n.want("g", "t", int32(p), offset)
	}
}

// TestTopicsComeAndGo: offsets go with their topic and do not come back with its
// name; new partitions start at their beginning for groups that consume the topic.
func TestTopicsComeAndGo(t *testing.T) {
	n := newNode(t)
	n.commit("g", "t", 0, 10)
	n.createTopic("u", 1)
	n.commit("h", "u", 0, 20)
	n.must(n.cat.AddPartitions(context.Background(), "t", 6, false))
	for range 2 {
		for p, offset := range []int64{10, -1, -1, -1, 0, 0} {
			n.want("g", "t", int32(p), offset)
		}
		n.want("h", "t", 5, -1)
		n.crash()
	}
	topic, _ := n.cat.ByName("t")
	n.must(n.cat.Delete(context.Background(), topic.ID))
	n.createTopic("t", 6)
	for range 2 {
		for p := range int32(6) {
			n.want("g", "t", p, -1)
		}
		n.want("h", "u", 0, 20)
		n.restart()
	}
}

func (n *node) marker(group string, producer int64, epoch int16, commit bool) {
	n.t.Helper()
	p := n.OffsetsPartition(group)
	batch := records.MarkerBatch(n.now(), producer, epoch, records.Marker{Commit: commit})
	err := wait(func(done func(error)) {
		n.must(partition.SubmitEssential([]partition.Append{{To: p, Batch: batch, Origin: partition.FromCoordinator}}, func(_ []partition.Result, err error) {
			if err == nil {
				n.EndTxn(n.PartitionFor(group), Producer{producer, epoch}, commit)
			}
			done(err)
		}))
	})
	n.must(err)
}

func (n *node) stage(cm Commit, producer int64, p int32, offset int64) CommitResult {
	cm.Txn = &Producer{producer, 1}
	cm.Items = []CommitItem{{Topic: "t", Partition: p, Offset: offset, LeaderEpoch: -1}}
	return n.tryCommit(cm)
}

func TestTransactionalOffsets(t *testing.T) {
	for _, commit := range []bool{true, false} {
		t.Run(fmt.Sprint(commit), func(t *testing.T) {
			n := newNode(t)
			n.commit("g", "t", 0, 1)
			n.commit("g", "t", 1, 1)
			simple := Commit{Group: "g", Generation: -1}
			for p := range int32(3) {
				if r := n.stage(simple, 77, p, 10); r.All != refusal.None {
					t.Fatal(r.All)
				}
			}
			n.commit("g", "t", 1, 5) // later in the log than what is staged
			for range 2 {
				n.want("g", "t", 0, 1)
				stable, _ := n.Fetch(Fetch{Group: "g", MemberEpoch: -1, RequireStable: true, Keys: []offsets.Key{{Topic: "t"}, {Topic: "t", Partition: 3}}})
				if stable[0].Reason != refusal.UnstableOffsetCommit || stable[1].Reason != refusal.None {
					t.Errorf("require stable: %v", stable)
				}
				n.crash()
			}
			n.marker("g", 77, 1, commit)
			for range 2 {
				want := map[bool][]int64{true: {10, 5, 10}, false: {1, 5, -1}}[commit]
				for p, offset := range want {
					n.want("g", "t", int32(p), offset)
				}
				stable, _ := n.Fetch(Fetch{Group: "g", MemberEpoch: -1, RequireStable: true, All: true})
				for _, f := range stable {
					if f.Reason != refusal.None {
						t.Errorf("after the marker: %v", f)
					}
				}
				n.crash()
			}
		})
	}
}

// TestTransactionalOffsetsOfZombies is row K17 of the reported cases.
func TestTransactionalOffsetsOfZombies(t *testing.T) {
	n := newNode(t)
	member, generation := n.settle("g")
	for _, tc := range []struct {
		cm   Commit
		want refusal.Reason
	}{
		{Commit{Group: "g", MemberID: member, Generation: generation - 1}, refusal.IllegalGeneration},
		{Commit{Group: "g", MemberID: "other", Generation: generation}, refusal.UnknownMember},
		{Commit{Group: "g", MemberID: member, InstanceID: "i", Generation: generation}, refusal.UnknownMember},
		{Commit{Group: "g", MemberID: member, Generation: generation}, refusal.None},
		{Commit{Group: "g", Generation: -1}, refusal.None}, // of old
		{Commit{Group: "nobody", MemberID: "m", Generation: 1}, refusal.GroupNotFound},
	} {
		if r := n.stage(tc.cm, 5, 0, 1); r.All != tc.want {
			t.Errorf("%+v: %v, want %v", tc.cm, r.All, tc.want)
		}
	}
}

func TestDeleteOffsets(t *testing.T) {
	n := newNode(t)
	n.createTopic("u", 1)
	member, _ := n.settle("g") // subscribed to t
	for _, topic := range []string{"t", "u"} {
		res := n.tryCommit(Commit{Group: "g", MemberID: member, Generation: 1, Retention: -1, Items: []CommitItem{{Topic: topic, Offset: 9}}})
		if res.All != refusal.None {
			t.Fatal(res)
		}
	}
	remove := func(group string, keys ...offsets.Key) CommitResult {
		return wait(func(done func(CommitResult)) { n.DeleteOffsets(group, keys, done) })
	}
	res := remove("g", offsets.Key{Topic: "t"}, offsets.Key{Topic: "u"}, offsets.Key{Topic: "nope"})
	if want := []refusal.Reason{refusal.SubscribedToTopic, refusal.None, refusal.UnknownTopicOrPartition}; !reflect.DeepEqual(res.Each, want) {
		t.Errorf("got %v %v", res.All, res.Each)
	}
	n.want("g", "t", 0, 9)
	n.want("g", "u", 0, -1)
	n.Leave("g", []classic.Leaver{{MemberID: member}})
	if res := remove("g", offsets.Key{Topic: "t"}); res.All != refusal.None || res.Each[0] != refusal.None {
		t.Errorf("empty group: %v", res)
	}
	n.restart()
	n.want("g", "t", 0, -1)
	if res := remove("nobody"); res.All != refusal.GroupNotFound {
		t.Errorf("unknown group: %v", res.All)
	}
}

// TestRetention: offsets of empty groups go after the retention, those of live
// groups never, however quiet they are.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.createTopic("u", 1)
		member, generation := n.settle("live")
		for _, topic := range []string{"t", "u"} {
			n.tryCommit(Commit{Group: "live", MemberID: member, Generation: generation, Retention: -1, Items: []CommitItem{{Topic: topic, Offset: 1}}})
		}
		left, _ := n.settle("left")
		n.tryCommit(Commit{Group: "left", MemberID: left, Generation: 1, Retention: -1, Items: []CommitItem{{Topic: "t", Offset: 1}}})
		n.commit("simple", "t", 0, 1)
		n.commit("simple", "t", 1, 1)
		n.tryCommit(Commit{Group: "asked", Generation: -1, Retention: time.Hour, Items: []CommitItem{{Topic: "t", Offset: 1}}})
		days := func(d int) {
			for range d * 24 * 3600 / 5 {
				time.Sleep(5 * time.Second)
				if why := n.Heartbeat("live", member, "", generation); why != refusal.None {
					t.Fatal(why)
				}
			}
		}
		days(3)
		n.commit("simple", "t", 1, 2)
		n.wantListed(map[string]string{"left": "Empty", "live": "Stable", "simple": "Empty"}) // left's session is over
		days(5)
		n.want("live", "t", 0, 1)
		n.want("live", "u", 0, -1) // nobody is subscribed to u
		n.want("simple", "t", 0, -1)
		n.want("simple", "t", 1, 2)
		n.wantListed(map[string]string{"live": "Stable", "simple": "Empty"})
		n.restart()
		n.wantListed(map[string]string{"live": "Stable", "simple": "Empty"})
	})
}

// TestStop: whoever waits is answered, and nothing is taken any more.
func TestStop(t *testing.T) {
	n := newNode(t)
	member, _ := n.settle("g")
	waiting := n.join("g", "")
	if why := n.Heartbeat("g", member, "", 1); why != refusal.RebalanceInProgress {
		t.Fatal(why)
	}
	n.Coordinator.Stop()
	if r := <-waiting; r.Reason != refusal.CoordinatorNotAvailable {
		t.Errorf("parked join: %v", r.Reason)
	}
	if r := <-n.join("g", ""); r.Reason != refusal.CoordinatorNotAvailable {
		t.Errorf("new join: %v", r.Reason)
	}
	if r := n.tryCommit(Commit{Group: "g", Generation: -1}); r.All != refusal.CoordinatorNotAvailable {
		t.Errorf("commit: %v", r.All)
	}
}

func TestStats(t *testing.T) {
	n := newNode(t)
	member, _ := n.settle("g")
	n.commit("h", "t", 0, 1)
	n.Leave("g", []classic.Leaver{{MemberID: member}})
	s := n.Stats()
	want := Stats{
		GroupsByState: map[string]int{"Empty": 2}, Offsets: 1,
		Rebalances: map[string]int64{"member joined": 1, "member left": 1}, Departures: map[string]int64{"member left": 1},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v\nwant %+v", s, want)
	}
}

// TestManyIdleGroups: a group costs memory only, and they are read back quickly.
func TestManyIdleGroups(t *testing.T) {
	n := newNode(t)
	const groups = 10_000
	before := runtime.NumGoroutine()
	done := make(chan CommitResult, groups)
	for i := range groups {
		n.Commit(Commit{Group: fmt.Sprint("g", i), Generation: -1, Retention: -1, Items: []CommitItem{{Topic: "t", Offset: int64(i)}}}, func(r CommitResult) { done <- r })
	}
	for range groups {
		<-done
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines more", after-before)
	}
	n.stop()
	begin := time.Now()
	n.start()
	t.Logf("started with %d groups in %v", groups, time.Since(begin))
	if len(n.List()) != groups {
		t.Errorf("%d groups", len(n.List()))
	}
	n.want("g4711", "t", 0, 4711)
}
