package kafka

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/records"
)

// TestK03OffsetsOfAnIsolationLevel: the end for read_committed is the last stable
// offset, for positions and for times.
func TestK03OffsetsOfAnIsolationLevel(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 500, values("0", "1", "2", "3", "4")...))
	p := newProducer(c, "open")
	p.sent(12, "t", 0, p.batch(0, "5", "6", "7", "8", "9")) // timestamps 1000 to 1004
	list := func(isolation int8, timestamp int64) int64 {
		req := kmsg.NewPtrListOffsetsRequest()
		req.IsolationLevel = isolation
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = "t"
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Timestamp = timestamp
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		r := call[*kmsg.ListOffsetsResponse](c, req, 7).Topics[0].Partitions[0]
		if r.ErrorCode != codes.None {
			t.Fatalf("error %d", r.ErrorCode)
		}
		return r.Offset
	}
	for _, tc := range []struct {
		isolation int8
		timestamp int64
		want      int64
	}{{0, -1, 10}, {1, -1, 5}, {0, 1002, 7}, {1, 1002, -1}, {1, 500, 0}} {
		if got := list(tc.isolation, tc.timestamp); got != tc.want {
			t.Errorf("isolation %d, time %d: offset %d, want %d", tc.isolation, tc.timestamp, got, tc.want)
		}
	}
}

// TestK13RepeatsAcrossARestart: the last five batches are recognised, and are
// answered with the offsets that they have.
func TestK13RepeatsAcrossARestart(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	p := newProducer(b.dial(), "")
	p.later = time.Duration(time.Now().UnixNano()) // old producers are forgotten
	for i := range int32(6) {
		if got := p.sent(9, "t", 0, p.batch(5*i, "a", "b", "c", "d", "e")); got != int64(5*i) {
			t.Fatalf("batch %d is at %d", i, got)
		}
	}
	for range 2 {
		for i := int32(1); i < 6; i++ {
			if got := p.sent(9, "t", 0, p.batch(5*i, "a", "b", "c", "d", "e")); got != int64(5*i) {
				t.Errorf("repeat of batch %d is at %d", i, got)
			}
		}
		if r := p.send(9, "t", 0, p.batch(0, "a", "b", "c", "d", "e")); r.ErrorCode != codes.OutOfOrderSequenceNumber {
			t.Errorf("a batch that is not remembered: error %d", r.ErrorCode)
		}
		if r := p.send(9, "t", 0, p.batch(31, "x")); r.ErrorCode != codes.OutOfOrderSequenceNumber {
			t.Errorf("a gap: error %d", r.ErrorCode)
		}
		if n := len(committedValues(p.c, "t", 0)); n != 30 {
			t.Errorf("the log holds %d records", n)
		}
		b.restart()
		p.c = b.dial()
	}
	if q := newProducer(p.c, ""); q.id == p.id || q.epoch != 0 {
		t.Errorf("after a restart another producer gets %d, epoch %d", q.id, q.epoch)
	}
}

// TestK15AbortedDataStaysUnseen: a read_committed consumer that polls all the
// time sees nothing of transactions that are aborted, at offset 0 too.
func TestK15AbortedDataStaysUnseen(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	consumer := b.client(kgo.ConsumeTopics("t"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(10*time.Millisecond))
	first := make(chan string, 1)
	go func() {
		for ctx.Err() == nil {
			for r := range consumer.PollFetches(ctx).RecordsAll() {
				first <- string(r.Value)
				return
			}
		}
	}()
	p := newProducer(b.dial(), "aborts")
	for range 50 {
		p.sent(12, "t", 0, p.batch(0, "x", "y"))
		if r := fetchAll(p.c, 1, "t", 0); len(r.RecordBatches) > 0 {
			for _, bt := range batches(t, r.RecordBatches) {
				if int64(bt.LastOffset()) >= r.LastStableOffset {
					t.Fatalf("batch up to %d, last stable offset %d", bt.LastOffset(), r.LastStableOffset)
				}
			}
		}
		if code := p.end(5, false); code != codes.None {
			t.Fatalf("abort: error %d", code)
		}
	}
	p.sent(12, "t", 0, p.batch(0, "committed"))
	if code := p.end(5, true); code != codes.None {
		t.Fatalf("commit: error %d", code)
	}
	if got := committedValues(p.c, "t", 0); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("a fetch shows %q", got)
	}
	if r := fetchAll(p.c, 0, "t", 0); len(r.AbortedTransactions) != 0 || len(batches(t, r.RecordBatches)) != 102 {
		t.Errorf("read_uncommitted: %d aborted, %d batches", len(r.AbortedTransactions), len(batches(t, r.RecordBatches)))
	}
	select {
	case v := <-first:
		if v != "committed" {
			t.Errorf("the consumer saw %q", v)
		}
	case <-ctx.Done():
		t.Error("the consumer saw nothing")
	}
}

// TestK17OffsetsOfAFormerMember: offsets in a transaction count only for the
// group's present generation and its members; without group management they count.
func TestK17OffsetsOfAFormerMember(t *testing.T) {
	b := startBroker(t)
	b.topic("in", 1)
	first, second := b.dial(), b.dial()
	member1, generation1 := joined(first, joining(first, "g", ""))
	synced(first, "g", member1, generation1)
	req2 := joining(second, "g", "")
	req1 := joining(first, "g", member1)
	_, generation2 := joined(first, req1)
	member2, _ := joined(second, req2)
	synced(first, "g", member1, generation2)
	synced(second, "g", member2, generation2)
	if generation2 == generation1 {
		t.Fatal("the second member started no generation")
	}
	p := newProducer(b.dial(), "etl")
	for _, tc := range []struct {
		name       string
		member     string
		generation int32
		want       codes.Code
	}{
		{"an old generation", member1, generation1, codes.IllegalGeneration},
		{"a stranger", "stranger", generation2, codes.UnknownMemberID},
	} {
		for v := int16(3); v <= 5; v++ {
			if v < 5 {
				if code := p.addOffsets(3, "g"); code != codes.None {
					t.Fatalf("AddOffsetsToTxn: error %d", code)
				}
			}
			if code := p.commitOffset(v, "g", tc.member, tc.generation, "in", 7); code != tc.want {
				t.Errorf("%s, version %d: error %d, want %d", tc.name, v, code, tc.want)
			}
		}
	}
	if code := p.end(5, true); code != codes.None {
		t.Fatalf("commit: error %d", code)
	}
	if o, _ := committedOffset(p.c, "g", "in", true); o != -1 {
		t.Fatalf("offset %d was committed", o)
	}
	for i, who := range []struct {
		member     string
		generation int32
	}{{"", -1}, {member2, generation2}} {
		want := int64(10 + i)
		if code := p.commitOffset(5, "g", who.member, who.generation, "in", want); code != codes.None {
			t.Fatalf("member %q: error %d", who.member, code)
		}
		if _, code := committedOffset(p.c, "g", "in", true); code != codes.UnstableOffsetCommit {
			t.Errorf("while the transaction is open: error %d", code)
		}
		if code := p.end(5, true); code != codes.None {
			t.Fatalf("commit: error %d", code)
		}
		if o, code := committedOffset(p.c, "g", "in", true); o != want || code != codes.None {
			t.Errorf("member %q: offset %d, error %d", who.member, o, code)
		}
	}
}

// TestRow11FirstSequence: without state any sequence is taken, except in
// transactions v2; a new epoch starts at 0.
func TestRow11FirstSequence(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 3)
	c := b.dial()
	plain := newProducer(c, "")
	plain.sent(9, "t", 0, plain.batch(7, "x"))
	plain.epoch++
	if r := plain.send(9, "t", 0, plain.batch(8, "x")); r.ErrorCode != codes.OutOfOrderSequenceNumber {
		t.Errorf("new epoch at sequence 8: error %d", r.ErrorCode)
	}
	plain.sent(9, "t", 0, plain.batch(0, "x"))
	v1 := newProducer(c, "v1")
	if got := v1.add(3, "t", 1); got[0] != codes.None {
		t.Fatal(got)
	}
	v1.sent(11, "t", 1, v1.batch(3, "x"))
	v2 := newProducer(c, "v2")
	if r := v2.send(12, "t", 2, v2.batch(3, "x")); r.ErrorCode != codes.OutOfOrderSequenceNumber {
		t.Errorf("transactions v2 at sequence 3: error %d", r.ErrorCode)
	}
	v2.sent(12, "t", 2, v2.batch(0, "x"))
}

// TestUnaddedPartitionsByVersion: a transactional batch for a partition that is not
// in the transaction (KIP-890), and one without a transactional id.
func TestUnaddedPartitionsByVersion(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	p := newProducer(b.dial(), "p")
	for v, want := range map[int16]codes.Code{9: codes.InvalidTxnState, 10: codes.InvalidTxnState, 11: codes.TransactionAbortable} {
		if r := p.send(v, "t", 0, p.batch(0, "x")); r.ErrorCode != want {
			t.Errorf("version %d: error %d, want %d", v, r.ErrorCode, want)
		}
	}
	for v, want := range map[int16]codes.Code{3: codes.InvalidTxnState, 4: codes.TransactionAbortable} {
		if code := p.commitOffset(v, "g", "", -1, "t", 1); code != want {
			t.Errorf("offsets, version %d: error %d, want %d", v, code, want)
		}
	}
	r := call[*kmsg.ProduceResponse](p.c, produceRequest("t", 0, p.batch(0, "x")), 12).Topics[0].Partitions[0]
	if r.ErrorCode != codes.InvalidTxnState {
		t.Errorf("without a transactional id: error %d", r.ErrorCode)
	}
	if r := fetchAll(p.c, 0, "t", 0); r.HighWatermark != 0 {
		t.Errorf("something was appended, up to %d", r.HighWatermark)
	}
}
