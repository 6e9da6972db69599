package topics

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// node is a catalogue over a disk in memory.
type node struct {
	t      *testing.T
	fs     *vfs.Mem
	store  *partlog.Store
	static map[string]string
	*Catalogue
}

func newNode(t *testing.T, static map[string]string) *node {
	n := &node{t: t, fs: vfs.NewMem(1 << 30), static: static}
	n.start()
	t.Cleanup(func() { n.must(n.store.Close()) })
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) start() {
	n.t.Helper()
	var err error
	n.store, err = partlog.Open(context.Background(), partlog.Options{FS: n.fs, Dir: "data", JournalFileSize: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	n.must(err)
	n.Catalogue, err = Open(context.Background(), Options{Store: n.store, Now: time.Now, Static: n.static, MaxPartitions: 100})
	n.must(err)
}

func (n *node) crash() {
	fs := n.fs.Crash(1)
	_ = n.store.Close()
	n.fs = fs
	n.start()
}

func (n *node) want(err error, c model.Class, words ...string) {
	n.t.Helper()
	if err == nil || model.ClassOf(err) != c {
		n.t.Errorf("error %v, want class %d", err, c)
		return
	}
	for _, w := range words {
		if !strings.Contains(model.ClientText(err), w) {
			n.t.Errorf("error %q does not say %q", model.ClientText(err), w)
		}
	}
}

// value gives a described setting as value (source).
func value(ds []Described, key string) string {
	for _, d := range ds {
		if d.Key == key {
			return fmt.Sprintf("%s (%d)", d.Value, d.Source)
		}
	}
	return "none"
}

func (n *node) topicValue(topic, key string) string {
	n.t.Helper()
	ds, err := n.DescribeTopic(topic)
	n.must(err)
	return value(ds, key)
}

func TestTopicsSurviveACrash(t *testing.T) {
	n, ctx := newNode(t, nil), t.Context()
	a, err := n.Create(ctx, Spec{Name: "a", Partitions: 3, Configs: map[string]string{"retention.ms": "1000"}}, false)
	n.must(err)
	gone, err := n.Create(ctx, Spec{Name: "gone", Partitions: 2}, false)
	n.must(err)
	n.must(n.Delete(ctx, gone.ID))
	n.must(n.AddPartitions(ctx, "a", 5, false))
	n.must(n.AlterBroker(ctx, []ConfigOp{{Key: "num.partitions", Value: "4"}}, false))
	n.must(n.AlterGroup(ctx, "g", []ConfigOp{{Key: "share.delivery.count.limit", Value: "9"}}, false))
	n.crash()
	got, ok := n.ByName("a")
	if !ok || got.ID != a.ID || len(got.Partitions) != 5 || got.Config.RetentionTime != time.Second || got.Created.IsZero() {
		t.Fatalf("a is %+v", got)
	}
	if _, ok := n.ByName("gone"); ok {
		t.Error("a deleted topic is back")
	}
	if _, ok := n.ByID(gone.ID); ok {
		t.Error("a deleted topic's id is back")
	}
	again, err := n.Create(ctx, Spec{Name: "gone", Partitions: -1}, false)
	n.must(err)
	if again.ID == gone.ID || len(again.Partitions) != 4 {
		t.Errorf("created again: same id %v, %d partitions, want the broker's new default of 4", again.ID == gone.ID, len(again.Partitions))
	}
	if v := n.GroupSettingInt("g", "share.delivery.count.limit"); v != 9 {
		t.Errorf("group setting %d", v)
	}
	if topics, parts := n.Count(); topics != 2 || parts != 9 {
		t.Errorf("%d topics, %d partitions", topics, parts)
	}
}

func TestRefusals(t *testing.T) {
	n, ctx := newNode(t, nil), t.Context()
	_, err := n.Create(ctx, Spec{Name: "a", Partitions: 1}, false)
	n.must(err)
	create := func(s Spec) error { _, err := n.Create(ctx, s, false); return err }
	n.want(create(Spec{Name: "a", Partitions: 1}), model.ClassExists, "exists")
	n.want(create(Spec{Name: "", Partitions: 1}), model.ClassInvalid, "empty")
	n.want(create(Spec{Name: "..", Partitions: 1}), model.ClassInvalid)
	n.want(create(Spec{Name: "a b", Partitions: 1}), model.ClassInvalid, "letters")
	n.want(create(Spec{Name: strings.Repeat("x", 250), Partitions: 1}), model.ClassInvalid, "249")
	n.want(create(Spec{Name: "b", Partitions: 0}), model.ClassInvalid, "at least 1")
	n.want(create(Spec{Name: "b", Partitions: 100}), model.ClassPolicy, "--max-partitions")
	n.want(create(Spec{Name: "b", Partitions: 1, Configs: map[string]string{"retention.mss": "1"}}), model.ClassInvalid, "unknown", "retention.ms")
	n.want(create(Spec{Name: "b", Partitions: 1, Configs: map[string]string{"retention.ms": "soon"}}), model.ClassInvalid, "whole number")
	n.want(create(Spec{Name: "b", Partitions: 1, Configs: map[string]string{"cleanup.policy": "burn"}}), model.ClassInvalid, "compact")
	n.want(create(Spec{Name: "b", Partitions: 1, Configs: map[string]string{"remote.storage.enable": "true"}}), model.ClassInvalid, "remote tier")
	n.want(n.AddPartitions(ctx, "a", 1, false), model.ClassInvalid, "more than that")
	n.want(n.AddPartitions(ctx, "none", 2, false), model.ClassNotFound)
	n.want(n.Delete(ctx, model.TopicID{9}), model.ClassNotFound)
	n.want(n.AlterBroker(ctx, []ConfigOp{{Key: "node.id", Value: "7"}}, false), model.ClassInvalid, "at start")
	n.want(n.AlterGroup(ctx, "g", []ConfigOp{{Key: "share.delivery.count.limit", Value: "0"}}, false), model.ClassInvalid)
	n.want(n.AlterGroup(ctx, "g", []ConfigOp{{Key: "share.partition.max.record.locks", Value: "99999999999"}}, false), model.ClassInvalid)
	n.want(n.AlterGroup(ctx, "g", []ConfigOp{{Key: "share.auto.offset.reset", Value: "by_duration:1h"}}, false), model.ClassInvalid, "PnDTnHnMn.nS")
	n.want(n.AlterGroup(ctx, "", nil, false), model.ClassInvalid)
	if _, ok := n.ByName("b"); ok {
		t.Error("a refused topic exists")
	}
}

func TestValidateOnlyChangesNothing(t *testing.T) {
	n, ctx := newNode(t, nil), t.Context()
	_, err := n.Create(ctx, Spec{Name: "a", Partitions: 2}, true)
	n.must(err)
	if _, ok := n.ByName("a"); ok {
		t.Fatal("validated only, and there")
	}
	_, err = n.Create(ctx, Spec{Name: "a", Partitions: 2}, false)
	n.must(err)
	_, err = n.Create(ctx, Spec{Name: "a", Partitions: 2}, true)
	n.want(err, model.ClassExists)
	n.must(n.AddPartitions(ctx, "a", 4, true))
	n.must(n.AlterTopic(ctx, "a", []ConfigOp{{Key: "retention.ms", Value: "5"}}, true))
	if a, _ := n.ByName("a"); len(a.Partitions) != 2 || len(a.Overrides) != 0 {
		t.Fatalf("%+v", a)
	}
}

// A value comes from the topic, else the broker's dynamic, else its static
// settings, else the default; coarser units are converted.
func TestPrecedenceOfSettings(t *testing.T) {
	n, ctx := newNode(t, map[string]string{"log.retention.hours": "2"}), t.Context()
	_, err := n.Create(ctx, Spec{Name: "a", Partitions: 1}, false)
	n.must(err)
	step := func(want string) {
		t.Helper()
		if got := n.topicValue("a", "retention.ms"); got != want {
			t.Errorf("retention.ms is %s, want %s", got, want)
		}
	}
	step("7200000 (4)")
	n.must(n.AlterBroker(ctx, []ConfigOp{{Key: "log.retention.minutes", Value: "3"}}, false))
	step("180000 (2)")
	n.must(n.AlterTopic(ctx, "a", []ConfigOp{{Key: "retention.ms", Value: "-1"}}, false))
	step("-1 (1)")
	if a, _ := n.ByName("a"); a.Config.RetentionTime != Unlimited {
		t.Errorf("parsed as %v", a.Config.RetentionTime)
	}
	n.must(n.AlterTopic(ctx, "a", []ConfigOp{{Key: "retention.ms", Op: OpDelete}}, false))
	step("180000 (2)")
	n.must(n.ReplaceBroker(ctx, nil, false))
	step("7200000 (4)")
	if got := n.topicValue("a", "segment.ms"); got != "604800000 (5)" {
		t.Errorf("segment.ms is %s", got)
	}
}

func TestListsAreEditedAndReplaced(t *testing.T) {
	n, ctx := newNode(t, nil), t.Context()
	_, err := n.Create(ctx, Spec{Name: "a", Partitions: 1}, false)
	n.must(err)
	op := func(value string, op int8) error {
		return n.AlterTopic(ctx, "a", []ConfigOp{{Key: "cleanup.policy", Value: value, Op: op}}, false)
	}
	n.must(op("compact", OpAppend))
	if a, _ := n.ByName("a"); !a.Config.CleanupCompact || !a.Config.CleanupDelete {
		t.Errorf("appended: %v", a.Overrides)
	}
	n.must(op("delete", OpSubtract))
	if a, _ := n.ByName("a"); !a.Config.CleanupCompact || a.Config.CleanupDelete {
		t.Errorf("subtracted: %v", a.Overrides)
	}
	n.want(n.AlterTopic(ctx, "a", []ConfigOp{{Key: "retention.ms", Value: "1", Op: OpAppend}}, false), model.ClassInvalid, "not a list")
	n.must(n.ReplaceTopic(ctx, "a", map[string]string{"max.message.bytes": "99"}, false))
	if a, _ := n.ByName("a"); !maps.Equal(a.Overrides, map[string]string{"max.message.bytes": "99"}) || a.Config.MaxMessageBytes != 99 {
		t.Errorf("replaced: %v", a.Overrides)
	}
}

// A retention of 0 keeps as little as can be, and -1 keeps all.
func TestRetentionOfZeroIsNotUnlimited(t *testing.T) {
	for _, c := range []struct {
		ms, bytes string
		age       time.Duration
		size      int64
	}{{"0", "0", time.Millisecond, 1}, {"-1", "-1", 0, 0}, {"5", "7", 5 * time.Millisecond, 7}} {
		cfg := settings{}.effective(map[string]string{"retention.ms": c.ms, "retention.bytes": c.bytes})
		log := cfg.partition(time.Hour).Log
		if log.RetentionTime != c.age || log.RetentionBytes != c.size {
			t.Errorf("retention.ms=%s, retention.bytes=%s: %v and %d", c.ms, c.bytes, log.RetentionTime, log.RetentionBytes)
		}
	}
}

func TestShareReset(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"earliest": 0, "latest": 0, "by_duration:PT1H": time.Hour, "by_duration:P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond,
	} {
		if _, back, err := ShareReset(value); err != nil || back != want {
			t.Errorf("%s: %v, %v", value, back, err)
		}
	}
	for _, value := range []string{"", "none", "earliest:x", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H"} {
		if _, _, err := ShareReset(value); err == nil {
			t.Errorf("%q is accepted", value)
		}
	}
}

// Watchers are told what became durable, before the change is answered.
func TestWatch(t *testing.T) {
	n, ctx := newNode(t, nil), t.Context()
	var told []string
	n.Watch(func(ch Change) {
		switch {
		case ch.Deleted != nil:
			told = append(told, "deleted "+ch.Deleted.Name)
		case ch.Grown != nil:
			told = append(told, fmt.Sprint("grown ", ch.Grown.Name, " ", ch.Partitions, " ", len(ch.Grown.Partitions)))
		case ch.Group != "":
			told = append(told, "group "+ch.Group)
		case ch.Broker:
			told = append(told, "broker")
		}
	})
	a, err := n.Create(ctx, Spec{Name: "a", Partitions: 1}, false)
	n.must(err)
	n.must(n.AddPartitions(ctx, "a", 3, false))
	n.must(n.AlterGroup(ctx, "g", []ConfigOp{{Key: "share.isolation.level", Value: "read_committed"}}, false))
	n.must(n.AlterBroker(ctx, []ConfigOp{{Key: "group.max.size", Value: "9"}}, false))
	n.must(n.Delete(ctx, a.ID))
	if got := strings.Join(told, ", "); got != "grown a 1 3, group g, broker, deleted a" {
		t.Errorf("told %s", got)
	}
}
