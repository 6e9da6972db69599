package groups

import (
	"bytes"
	"context"
	"path"
	"testing"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/core/statelog"
)

// TestLogsAreKeptShort: a log that is mostly out of date is cut, and what counts is
// there after a crash; a group with an open transaction is waited for.
func TestLogsAreKeptShort(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	const group = "g"
	s := n.shardOf(group)
	length := func() int {
		w := s.log.Partition().Watermarks()
		return int(w.HighWatermark - w.LogStart)
	}
	member, generation := n.settle(group)
	for i := range 500 {
		res := n.tryCommit(Commit{Group: group, MemberID: member, Generation: generation, Retention: -1, Items: []CommitItem{
			{Topic: "t", Partition: int32(i % 3), Offset: int64(i), LeaderEpoch: -1},
		}})
		if res.All != refusal.None {
			t.Fatal(res.All)
		}
	}
	n.must(s.shorten(ctx, 1000)) // not long enough
	if length() < 500 {
		t.Fatalf("%d records left", length())
	}
	n.must(s.shorten(ctx, 100))
	if length() > 10 {
		t.Errorf("%d records left", length())
	}
	n.must(s.shorten(ctx, 1)) // nothing is out of date now
	look := func() {
		t.Helper()
		for p, offset := range []int64{498, 499, 497} {
			n.want(group, "t", int32(p), offset)
		}
		if why := n.Heartbeat(group, member, "", generation); why != refusal.None {
			t.Errorf("heartbeat: %v", why)
		}
	}
	look()
	n.crash()
	look()

	s = n.shardOf(group)
	for i := range 100 {
		n.stage(Commit{Group: group, Generation: -1}, 7, 0, int64(1000+i))
	}
	short := make(chan error, 1)
	go func() { short <- s.shorten(ctx, 1) }()
	n.marker(group, 7, 1, true)
	n.must(<-short)
	n.crash()
	n.want(group, "t", 0, 1099)
	n.want(group, "t", 1, 499)
}

func TestConsumerGroupLogsAreKeptShort(t *testing.T) {
	n := newNode(t)
	for range 60 {
		n.beat("g", "a", 0, nil)
		n.beat("g", "a", -1, nil)
	}
	r := n.beat("g", "b", 0, nil)
	n.must(n.shardOf("g").shorten(context.Background(), 10))
	w := n.OffsetsPartition("g").Watermarks()
	if w.HighWatermark-w.LogStart > 10 {
		t.Errorf("%d records left", w.HighWatermark-w.LogStart)
	}
	n.crash()
	if got := n.beat("g", "b", r.Epoch, r.Assignment); got.Reason != refusal.None {
		t.Errorf("after the crash: %+v", got)
	}
}

// TestForeignRecords: what is no record of a group is passed over, not the end.
func TestForeignRecords(t *testing.T) {
	n := newNode(t)
	n.commit("g", "t", 0, 1)
	for _, r := range []statelog.Record{
		{Key: []byte{0}, Value: []byte{1}}, {Key: []byte{0, 1, 0, 9}, Value: []byte{1}}, {Key: []byte{0, 2, 0, 1, 'g'}, Value: []byte("?")}, {Value: []byte{1}},
	} {
		n.must(wait(func(done func(error)) { n.must(n.shardOf("g").log.Append([]statelog.Record{r}, done)) }))
	}
	n.commit("g", "t", 1, 2)
	n.crash()
	n.want("g", "t", 0, 1)
	n.want("g", "t", 1, 2)
}

// spoil flips the bytes that say what, wherever they are on disk.
func (n *node) spoil(what string) {
	n.t.Helper()
	found := 0
	names, err := n.fs.List("data")
	n.must(err)
	for _, name := range names {
		name = path.Join("data", name)
		size, err := n.fs.Size(name)
		n.must(err)
		f, err := n.fs.OpenRW(name)
		if err != nil {
			continue // a directory
		}
		buf := make([]byte, size)
		_, _ = f.ReadAt(buf, 0)
		for from := 0; ; {
			i := bytes.Index(buf[from:], []byte(what))
			if i < 0 {
				break
			}
			_, err := f.WriteAt([]byte("?"), int64(from+i))
			n.must(err)
			found++
			from += i + 1
		}
		n.must(f.Close())
	}
	if found == 0 {
		n.t.Fatalf("%q is not on disk", what)
	}
}

// TestDamagedPartition: groups whose records cannot be read are refused, others served.
func TestDamagedPartition(t *testing.T) {
	n := newNode(t)
	other := "h"
	for n.PartitionFor(other) == n.PartitionFor("g") {
		other += "h"
	}
	for group, metadata := range map[string]string{"g": "needle in g", other: "note"} {
		n.tryCommit(Commit{Group: group, Generation: -1, Retention: -1, Items: []CommitItem{{Topic: "t", Offset: 2, Metadata: metadata}}})
		n.commit(group, "t", 1, 3)
	}
	n.stop()
	n.spoil("needle in g")
	n.start()
	if r := n.tryCommit(Commit{Group: "g", Generation: -1}); r.All != refusal.CoordinatorNotAvailable {
		t.Errorf("commit: %v", r.All)
	}
	if _, why := n.Fetch(Fetch{Group: "g", MemberEpoch: -1, All: true}); why != refusal.CoordinatorNotAvailable {
		t.Errorf("fetch: %v", why)
	}
	if _, why := n.Describe("g"); why != refusal.CoordinatorNotAvailable {
		t.Errorf("describe: %v", why)
	}
	if r := <-n.join("g", ""); r.Reason != refusal.CoordinatorNotAvailable {
		t.Errorf("join: %v", r.Reason)
	}
	n.want(other, "t", 0, 2)
	n.want(other, "t", 1, 3)
}
