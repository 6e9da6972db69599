package groups

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// node is a broker without fronts, in memory.
type node struct {
	t     testing.TB
	fs    *vfs.Mem
	now   func() time.Time
	store *partlog.Store
	cat   *topics.Catalogue
	*Coordinator
}

// newNode starts a broker with topic t of four partitions.
func newNode(t testing.TB) *node {
	n := &node{t: t, fs: vfs.NewMem(1 << 30), now: time.Now}
	n.start()
	n.createTopic("t", 4)
	t.Cleanup(func() { n.stop() })
	return n
}

func (n *node) start() {
	n.t.Helper()
	ctx := context.Background()
	var err error
	n.store, err = partlog.Open(ctx, partlog.Options{FS: n.fs, Dir: "data", JournalFileSize: 1 << 20, Clock: n.now})
	n.must(err)
	n.cat, err = topics.Open(ctx, topics.Options{Store: n.store, Now: n.now})
	n.must(err)
	n.Coordinator, err = Open(ctx, n.cat, Options{Now: n.now, Log: slog.New(slog.DiscardHandler)})
	n.must(err)
}

func (n *node) stop() {
	n.Coordinator.Stop()
	n.must(n.store.Close())
}

// restart is a clean stop and a start.
func (n *node) restart() {
	n.stop()
	n.start()
}

// crash starts anew from what a power cut leaves of the disk.
func (n *node) crash() {
	fs := n.fs.Crash(1)
	n.stop()
	n.fs = fs
	n.start()
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) createTopic(name string, partitions int32) {
	n.t.Helper()
	_, err := n.cat.Create(context.Background(), topics.Spec{Name: name, Partitions: partitions}, false)
	n.must(err)
}

// wait calls f with a callback and returns what it is called with.
func wait[R any](f func(func(R))) R {
	ch := make(chan R, 1)
	f(func(r R) { ch <- r })
	return <-ch
}

// join starts a JoinGroup.
func (n *node) join(group, id string) <-chan classic.JoinReply {
	ch := make(chan classic.JoinReply, 1)
	n.Join(group, classic.Join{
		MemberID: id, ClientID: "c", ClientHost: "/127.0.0.1", Session: 10 * time.Second, Rebalance: 30 * time.Second,
		ProtocolType: "consumer", Protocols: []classic.Protocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff}}},
	}, func(r classic.JoinReply) { ch <- r })
	return ch
}

// settle makes a stable group of one new member.
func (n *node) settle(group string) (member string, generation int32) {
	n.t.Helper()
	j := <-n.join(group, "")
	if j.Reason != refusal.None {
		n.t.Fatalf("join: %v", j.Reason)
	}
	s := wait(func(done func(classic.SyncReply)) {
		n.Sync(group, classic.Sync{MemberID: j.MemberID, Generation: j.Generation, Assignments: map[string][]byte{j.MemberID: []byte("all")}}, done)
	})
	if s.Reason != refusal.None || string(s.Assignment) != "all" {
		n.t.Fatalf("sync: %v %q", s.Reason, s.Assignment)
	}
	return j.MemberID, j.Generation
}

// commit stores one offset outside group management.
func (n *node) commit(group, topic string, p int32, offset int64) {
	n.t.Helper()
	res := n.tryCommit(Commit{Group: group, Generation: -1, Retention: -1, Items: []CommitItem{{Topic: topic, Partition: p, Offset: offset, LeaderEpoch: -1}}})
	if res.All != refusal.None || res.Each[0] != refusal.None {
		n.t.Fatalf("commit: %+v", res)
	}
}

func (n *node) tryCommit(cm Commit) CommitResult {
	return wait(func(done func(CommitResult)) { n.Commit(cm, done) })
}

// offset is the committed offset, or -1.
func (n *node) offset(group, topic string, p int32) int64 {
	n.t.Helper()
	got, why := n.Fetch(Fetch{Group: group, MemberEpoch: -1, Keys: []offsets.Key{{Topic: topic, Partition: p}}})
	if why != refusal.None || got[0].Reason != refusal.None {
		n.t.Fatalf("fetch: %v %v", why, got)
	}
	return got[0].Offset.Offset
}

func (n *node) want(group, topic string, p int32, offset int64) {
	n.t.Helper()
	if got := n.offset(group, topic, p); got != offset {
		n.t.Errorf("group %s, %s-%d: offset %d, want %d", group, topic, p, got, offset)
	}
}

func (n *node) delete(group string) refusal.Reason {
	return wait(func(done func(refusal.Reason)) { n.Delete(group, done) })
}

// listed gives the groups by id with their states.
func (n *node) listed() map[string]string {
	m := map[string]string{}
	for _, l := range n.List() {
		m[l.ID] = l.State
	}
	return m
}

func (n *node) wantListed(want map[string]string) {
	n.t.Helper()
	if got := n.listed(); fmt.Sprint(got) != fmt.Sprint(want) {
		n.t.Errorf("groups %v, want %v", got, want)
	}
}
