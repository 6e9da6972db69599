package kafka

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/session"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

func TestFetchEveryVersion(t *testing.T) {
	b := startBroker(t)
	id := b.topic("t", 2).ID
	c := b.dial()
	want := batch(t, records.None, 1, values("x", "y")...)
	produced(c, "t", 1, append(model.Batch(nil), want...))
	for v := int16(4); v <= 18; v++ {
		req := fetchRequest("t", 0, 1)
		if v >= 13 {
			req.Topics[0].Topic, req.Topics[0].TopicID = "", id
		}
		resp := call[*kmsg.FetchResponse](c, req, v)
		parts := resp.Topics[0].Partitions
		if resp.ErrorCode != 0 || len(parts) != 2 || parts[0].RecordBatches == nil || len(parts[0].RecordBatches) != 0 {
			t.Fatalf("version %d: %+v", v, resp)
		}
		got := parts[1]
		if got.HighWatermark != 2 || got.LastStableOffset != 2 || got.LogStartOffset != 0 && v >= 5 || got.AbortedTransactions != nil {
			t.Errorf("version %d: %+v", v, got)
		}
		if list := batches(t, got.RecordBatches); len(list) != 1 || !bytes.Equal(list[0].Payload(), want.Payload()) {
			t.Errorf("version %d: other records than were produced", v)
		}
	}
}

// TestFetchEncoderMatchesTheCodec compares the response's own encoder with the
// generated one, over random responses.
func TestFetchEncoderMatchesTheCodec(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for version := int16(4); version <= 18; version++ {
		for range 50 {
			ours, theirs := randomFetch(rng, version)
			theirs.SetVersion(version)
			ours.SetVersion(version)
			got := bytes.Join(ours.AppendPieces([]byte("head")), nil)
			if want := theirs.AppendTo([]byte("head")); !bytes.Equal(got, want) {
				t.Fatalf("version %d:\n got %x\nwant %x", version, got, want)
			}
		}
	}
}

func randomFetch(rng *rand.Rand, version int16) (*fetchResponse, *kmsg.FetchResponse) {
	theirs := kmsg.NewPtrFetchResponse()
	theirs.ThrottleMillis, theirs.SessionID = rng.Int32(), rng.Int32()
	ours := &fetchResponse{FetchResponse: kmsg.NewPtrFetchResponse()}
	ours.ThrottleMillis, ours.SessionID = theirs.ThrottleMillis, theirs.SessionID
	for i := range rng.IntN(4) {
		key := session.Key{Name: string(rune('a'+i)) + strings.Repeat("n", rng.IntN(200))}
		if version >= 13 {
			key = session.Key{ID: model.TopicID{byte(i + 1), byte(rng.IntN(256))}}
		}
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = key.Name, key.ID
		for range rng.IntN(3) + 1 {
			key.Index = rng.Int32()
			part, p := randomPart(rng, key, version)
			ours.parts = append(ours.parts, part)
			topic.Partitions = append(topic.Partitions, p)
		}
		theirs.Topics = append(theirs.Topics, topic)
	}
	return ours, theirs
}

func randomPart(rng *rand.Rand, key session.Key, version int16) (fetchPart, kmsg.FetchResponseTopicPartition) {
	ours := fetchPart{want: &session.Partition{Key: key}}
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.RecordBatches = key.Index, []byte{}
	if rng.IntN(4) == 0 {
		ours.err = coded(codes.UnknownLeaderEpoch, "x")
		p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = codes.UnknownLeaderEpoch, -1, -1, -1
		return ours, p
	}
	f := &ours.found
	f.HighWatermark, f.LastStable, f.LogStart = model.Offset(rng.Int64()), model.Offset(rng.Int64()), model.Offset(rng.Int64())
	p.HighWatermark, p.LastStableOffset, p.LogStartOffset = int64(f.HighWatermark), int64(f.LastStable), int64(f.LogStart)
	for range rng.IntN(3) {
		d := bytes.Repeat([]byte{7}, rng.IntN(300)+1)
		f.Data, f.Bytes = append(f.Data, d), f.Bytes+len(d)
		p.RecordBatches = append(p.RecordBatches, d...)
	}
	if n := rng.IntN(4); n > 0 {
		f.Aborted, p.AbortedTransactions = []partition.AbortedTxn{}, []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		for range n - 1 {
			a := partition.AbortedTxn{ProducerID: rng.Int64(), First: model.Offset(rng.Int64())}
			f.Aborted = append(f.Aborted, a)
			k := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			k.ProducerID, k.FirstOffset = a.ProducerID, int64(a.First)
			p.AbortedTransactions = append(p.AbortedTransactions, k)
		}
	}
	if version >= 12 && rng.IntN(3) == 0 {
		ours.diverging = &divergence{rng.Int32N(1000), model.Offset(rng.Int64())}
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = ours.diverging.epoch, int64(ours.diverging.end)
	}
	return ours, p
}

// TestRow17BatchesComeWhole is also K07 of the reported cases.
func TestRow17BatchesComeWhole(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 3)
	c := b.dial()
	big := batch(t, records.None, 1, values(strings.Repeat("x", 126<<10))...)
	two := batch(t, records.None, 1, values("a", "b", "c")...)
	produced(c, "t", 1, append(model.Batch(nil), big...))
	produced(c, "t", 1, append(model.Batch(nil), two...))
	produced(c, "t", 2, append(model.Batch(nil), big...))
	sizes := func(change func(*kmsg.FetchRequest)) (out []int) {
		req := fetchRequest("t", 0, 1, 2)
		change(req)
		for _, p := range call[*kmsg.FetchResponse](c, req, 11).Topics[0].Partitions {
			batches(t, p.RecordBatches) // whole ones only
			out = append(out, len(p.RecordBatches))
		}
		return out
	}
	partMax := func(req *kmsg.FetchRequest, n int32) {
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].PartitionMaxBytes = n
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*kmsg.FetchRequest)
		want   []int
	}{
		{"K07: a byte for everything", func(r *kmsg.FetchRequest) { r.MaxBytes = 1; partMax(r, 1) }, []int{0, len(big), 0}},
		{"a byte for each partition", func(r *kmsg.FetchRequest) { partMax(r, 1) }, []int{0, len(big), 0}},
		{"a byte for the request", func(r *kmsg.FetchRequest) { r.MaxBytes = 1 }, []int{0, len(big), 0}},
		{"nothing at all", func(r *kmsg.FetchRequest) { r.MaxBytes = 0; partMax(r, 0) }, []int{0, len(big), 0}},
		{"room for all", func(*kmsg.FetchRequest) {}, []int{0, len(big) + len(two), len(big)}},
		{"room for the first partition", func(r *kmsg.FetchRequest) { r.MaxBytes = int32(len(big) + len(two) + 10) }, []int{0, len(big) + len(two), 0}},
		{"negative", func(r *kmsg.FetchRequest) { r.MaxBytes = -1; partMax(r, -5) }, []int{0, len(big), 0}},
		{"inside a batch", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[1].FetchOffset = 2
			r.MaxBytes = 1
		}, []int{0, len(two), 0}},
	} {
		if got := sizes(tc.change); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v bytes, want %v", tc.name, got, tc.want)
		}
	}
}

func TestFetchErrors(t *testing.T) {
	b := startBroker(t)
	id := b.topic("t", 1).ID
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 1, values("x", "y")...))
	epoch := b.epoch("t")
	for _, tc := range []struct {
		name   string
		change func(*kmsg.FetchRequest)
		want   codes.Code
	}{
		{"at the end", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].FetchOffset = 2 }, codes.None},
		{"beyond the end", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].FetchOffset = 3 }, codes.OffsetOutOfRange},
		{"before the start", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].FetchOffset = -1 }, codes.OffsetOutOfRange},
		{"no such partition", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].Partition = 7 }, codes.UnknownTopicOrPartition},
		{"no such topic", func(r *kmsg.FetchRequest) { r.Topics[0].Topic = "missing" }, codes.UnknownTopicOrPartition},
		{"current epoch", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch }, codes.None},
		{"later epoch", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch + 1 }, codes.UnknownLeaderEpoch},
	} {
		req := fetchRequest("t", 0)
		tc.change(req)
		p := call[*kmsg.FetchResponse](c, req, 12).Topics[0].Partitions[0]
		if p.ErrorCode != tc.want || tc.want != 0 && (p.HighWatermark != -1 || p.LastStableOffset != -1 || len(p.RecordBatches) != 0) {
			t.Errorf("%s: %+v, want error %d", tc.name, p, tc.want)
		}
	}
	b.restart()
	c = b.dial()
	req := fetchRequest("t", 0)
	req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
	if p := call[*kmsg.FetchResponse](c, req, 12).Topics[0].Partitions[0]; p.ErrorCode != codes.FencedLeaderEpoch {
		t.Errorf("an epoch that is over: error %d", p.ErrorCode)
	}
	req = fetchRequest("", 0)
	req.Topics[0].TopicID = [16]byte{9}
	if p := call[*kmsg.FetchResponse](c, req, 13).Topics[0].Partitions[0]; p.ErrorCode != codes.UnknownTopicID {
		t.Errorf("unknown id: error %d", p.ErrorCode)
	}
	req.Topics[0].TopicID = id
	if p := call[*kmsg.FetchResponse](c, req, 13).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("known id: error %d", p.ErrorCode)
	}
}

func TestFetchFindsDivergence(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	produced(b.dial(), "t", 0, batch(t, records.None, 1, values("x", "y")...))
	first := b.epoch("t")
	b.restart()
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 1, values("z")...))
	for _, tc := range []struct {
		name   string
		offset int64
		last   int32
		code   codes.Code
		end    int64 // of the diverging epoch; -1 for none
	}{
		{"right", 2, first, 0, -1},
		{"beyond the epoch's end", 3, first, 0, 2},
		{"an epoch that is not known", 2, first + 9, codes.OffsetOutOfRange, -1},
	} {
		req := fetchRequest("t", 0)
		req.Topics[0].Partitions[0].FetchOffset, req.Topics[0].Partitions[0].LastFetchedEpoch = tc.offset, tc.last
		p := call[*kmsg.FetchResponse](c, req, 12).Topics[0].Partitions[0]
		if p.ErrorCode != tc.code || p.DivergingEpoch.EndOffset != tc.end {
			t.Errorf("%s: error %d, diverging %+v", tc.name, p.ErrorCode, p.DivergingEpoch)
		}
		if tc.end >= 0 && (len(p.RecordBatches) != 0 || p.HighWatermark != 3) {
			t.Errorf("%s: %+v", tc.name, p)
		}
	}
}

func TestFetchWaitsForBytes(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	c, p := b.dial(), b.dial()
	wait := func(minBytes, maxWait int32, isolation int8) (<-chan *kmsg.FetchResponse, time.Time) {
		req := fetchRequest("t", 0, 1)
		req.MinBytes, req.MaxWaitMillis, req.IsolationLevel = minBytes, maxWait, isolation
		req.Topics[0].Partitions[1].FetchOffset = b.watermark("t", 1)
		out := make(chan *kmsg.FetchResponse, 1)
		go func() { out <- call[*kmsg.FetchResponse](c, req, 11) }()
		return out, time.Now()
	}
	// Nothing comes: the answer is due when the time is over.
	done, start := wait(1, 100, 0)
	if resp := <-done; time.Since(start) < 100*time.Millisecond || len(resp.Topics[0].Partitions) != 2 {
		t.Errorf("answered after %v: %+v", time.Since(start), resp)
	}
	// A record comes: it is answered at once.
	done, start = wait(1, 20_000, 0)
	produced(p, "t", 1, batch(t, records.None, 1, values("x")...))
	if resp := <-done; len(resp.Topics[0].Partitions[1].RecordBatches) == 0 || time.Since(start) > 10*time.Second {
		t.Errorf("answered after %v: %+v", time.Since(start), resp)
	}
	// Too little comes, and then enough.
	done, _ = wait(300, 20_000, 0)
	produced(p, "t", 1, batch(t, records.None, 1, values("x")...))
	select {
	case <-done:
		t.Error("answered with less than min bytes")
	case <-time.After(50 * time.Millisecond):
	}
	produced(p, "t", 1, batch(t, records.None, 1, values(strings.Repeat("x", 300))...))
	if resp := <-done; len(batches(t, resp.Topics[0].Partitions[1].RecordBatches)) != 2 {
		t.Errorf("%+v", resp)
	}
	// The topic goes away.
	done, _ = wait(1, 20_000, 0)
	topic, _ := b.topics.ByName("t")
	if err := b.topics.Delete(context.Background(), topic.ID); err != nil {
		t.Fatal(err)
	}
	if resp := <-done; resp.Topics[0].Partitions[0].ErrorCode != codes.UnknownTopicOrPartition {
		t.Errorf("after the topic was deleted: %+v", resp)
	}
}

// TestCloseEndsLongPolls: a consumer that waits for records holds up no stop.
func TestCloseEndsLongPolls(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	req := fetchRequest("t", 0)
	req.MaxWaitMillis = 60_000
	req.SetVersion(11)
	c.send(req)
	start := time.Now()
	b.stop()
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("stopping took %v", d)
	}
}

func TestRow18FetchSessions(t *testing.T) {
	b := startBroker(t)
	id := b.topic("t", 3).ID
	c := b.dial()
	fetch := func(sid, epoch int32, change func(*kmsg.FetchRequest)) *kmsg.FetchResponse {
		t.Helper()
		req := fetchRequest("", 0, 1, 2)
		req.Topics[0].TopicID = id
		req.SessionID, req.SessionEpoch = sid, epoch
		if sid != 0 && epoch > 0 {
			req.Topics = nil
		}
		if change != nil {
			change(req)
		}
		return call[*kmsg.FetchResponse](c, req, 13)
	}
	indexes := func(resp *kmsg.FetchResponse) (out []int32) {
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				out = append(out, p.Partition)
			}
		}
		return out
	}
	want := func(what string, resp *kmsg.FetchResponse, code codes.Code, parts ...int32) {
		t.Helper()
		if resp.ErrorCode != code || !slices.Equal(indexes(resp), parts) {
			t.Fatalf("%s: error %d, partitions %v; want %d, %v", what, resp.ErrorCode, indexes(resp), code, parts)
		}
	}

	full := fetch(0, 0, nil)
	want("opening", full, 0, 0, 1, 2)
	sid := full.SessionID
	if sid == 0 {
		t.Fatal("no session was opened")
	}
	want("nothing new", fetch(sid, 1, nil), 0)
	produced(c, "t", 1, batch(t, records.None, 1, values("x")...))
	got := fetch(sid, 2, nil)
	want("a record", got, 0, 1)
	if len(got.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Error("the record is missing")
	}
	want("the same again, as the position did not move", fetch(sid, 3, nil), 0, 1)
	moved := func(index int32, offset int64) func(*kmsg.FetchRequest) {
		return func(r *kmsg.FetchRequest) {
			r.Topics = fetchRequest("", index).Topics
			r.Topics[0].TopicID = id
			r.Topics[0].Partitions[0].FetchOffset = offset
		}
	}
	want("moved on", fetch(sid, 4, moved(1, 1)), 0)
	want("an old epoch", fetch(sid, 4, nil), codes.InvalidFetchSessionEpoch)
	want("the right epoch still works", fetch(sid, 5, nil), 0)
	want("an unknown session", fetch(sid+1, 1, nil), codes.FetchSessionIDNotFound)

	// An error is told, and its end too.
	want("out of range", fetch(sid, 6, moved(2, 50)), 0, 2)
	want("still", fetch(sid, 7, nil), 0, 2)
	want("back in range", fetch(sid, 8, moved(2, 0)), 0, 2)
	want("quiet", fetch(sid, 9, nil), 0)

	// Forgetting.
	forget := func(indexes ...int32) func(*kmsg.FetchRequest) {
		return func(r *kmsg.FetchRequest) {
			f := kmsg.NewFetchRequestForgottenTopic()
			f.TopicID, f.Partitions = id, indexes
			r.ForgottenTopics = append(r.ForgottenTopics, f)
		}
	}
	produced(c, "t", 2, batch(t, records.None, 1, values("x")...))
	want("forgotten", fetch(sid, 10, forget(2)), 0)
	if resp := fetch(sid, 11, forget(0, 1)); resp.SessionID != 0 {
		t.Errorf("a session without partitions goes on as %d", resp.SessionID)
	}
	want("the empty session is gone", fetch(sid, 12, nil), codes.FetchSessionIDNotFound)

	// Closing.
	sid = fetch(0, 0, nil).SessionID
	if resp := fetch(sid, -1, nil); resp.SessionID != 0 || len(indexes(resp)) != 3 {
		t.Errorf("closing: %+v", resp)
	}
	want("after closing", fetch(sid, 1, nil), codes.FetchSessionIDNotFound)
	// Opening anew ends the old one.
	sid = fetch(0, 0, nil).SessionID
	if next := fetch(sid, 0, nil).SessionID; next == 0 || next == sid {
		t.Errorf("opened anew as %d", next)
	}
	want("the one before", fetch(sid, 1, nil), codes.FetchSessionIDNotFound)
	if resp := call[*kmsg.FetchResponse](c, fetchRequest("t", 0), 6); resp.SessionID != 0 {
		t.Error("version 6 has no sessions")
	}
}

// TestRow18SessionsKeepTheirNaming: a session by topic ids cannot go on by names.
func TestRow18SessionsKeepTheirNaming(t *testing.T) {
	b := startBroker(t)
	id := b.topic("t", 1).ID
	c := b.dial()
	req := fetchRequest("", 0)
	req.Topics[0].TopicID, req.SessionEpoch = id, 0
	sid := call[*kmsg.FetchResponse](c, req, 13).SessionID
	next := kmsg.NewPtrFetchRequest()
	next.SessionID, next.SessionEpoch = sid, 1
	if resp := call[*kmsg.FetchResponse](c, next, 12); resp.ErrorCode != codes.FetchSessionTopicIDError {
		t.Errorf("error %d, want FETCH_SESSION_TOPIC_ID_ERROR", resp.ErrorCode)
	}
}

func TestRow15IsolationBoundsAFetch(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 1, values("plain")...))
	open := openTransaction(t, c, "t", 0, "inside")
	for _, tc := range []struct {
		isolation int8
		batches   int
		lso       int64
	}{{0, 2, 1}, {1, 1, 1}} {
		req := fetchRequest("t", 0)
		req.IsolationLevel = tc.isolation
		p := call[*kmsg.FetchResponse](c, req, 11).Topics[0].Partitions[0]
		if n := len(batches(t, p.RecordBatches)); n != tc.batches || p.LastStableOffset != tc.lso || p.HighWatermark != 2 {
			t.Errorf("isolation %d: %d batches, %+v", tc.isolation, n, p)
		}
	}
	open.end(false)
	req := fetchRequest("t", 0)
	req.IsolationLevel = 1
	p := call[*kmsg.FetchResponse](c, req, 11).Topics[0].Partitions[0]
	if len(p.AbortedTransactions) != 1 || p.AbortedTransactions[0].FirstOffset != 1 || p.LastStableOffset != 3 {
		t.Errorf("after the abort: %+v", p)
	}
	req.IsolationLevel = 0
	if p := call[*kmsg.FetchResponse](c, req, 11).Topics[0].Partitions[0]; p.AbortedTransactions != nil {
		t.Errorf("read uncommitted has an aborted list: %+v", p)
	}
}

// openTxn is a transaction that has written one record.
type openTxn struct {
	c     *rawConn
	id    string
	pid   int64
	epoch int16
}

func openTransaction(t *testing.T, c *rawConn, topic string, index int32, value string) *openTxn {
	t.Helper()
	x := &openTxn{c: c, id: "txn-" + value}
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis, init.ProducerID, init.ProducerEpoch = &x.id, 60_000, -1, -1
	ir := call[*kmsg.InitProducerIDResponse](c, init, 4)
	if ir.ErrorCode != 0 {
		t.Fatalf("InitProducerId: error %d", ir.ErrorCode)
	}
	x.pid, x.epoch = ir.ProducerID, ir.ProducerEpoch
	m := records.Plain(time.UnixMilli(1))
	m.Transactional, m.ProducerID, m.ProducerEpoch, m.BaseSequence = true, x.pid, x.epoch, 0
	bl := records.NewBuilder(m)
	bl.Add(0, nil, []byte(value), nil)
	recs, err := bl.Build(-1)
	if err != nil {
		t.Fatal(err)
	}
	req := produceRequest(topic, index, recs)
	req.TransactionID = &x.id
	if p := call[*kmsg.ProduceResponse](c, req, 12).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Fatalf("produce in a transaction: error %d (%s)", p.ErrorCode, text(p.ErrorMessage))
	}
	return x
}

func (x *openTxn) end(commit bool) {
	x.c.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = x.id, x.pid, x.epoch, commit
	if resp := call[*kmsg.EndTxnResponse](x.c, req, 5); resp.ErrorCode != 0 {
		x.c.t.Fatalf("EndTxn: error %d", resp.ErrorCode)
	}
}

// TestK03ListOffsetsHonoursIsolation: an end beyond the last stable offset is one
// that a committed reader cannot reach.
func TestK03ListOffsetsHonoursIsolation(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	produced(c, "t", 0, batch(t, records.None, 1, values("a", "b", "c", "d", "e")...))
	openTransaction(t, c, "t", 0, "x") // at 5, timestamp 1
	produced(c, "t", 0, batch(t, records.None, 100, values("f", "g")...))
	for _, tc := range []struct {
		ts        int64
		isolation int8
		want      int64
	}{{tsLatest, 0, 8}, {tsLatest, 1, 5}, {100, 0, 6}, {100, 1, -1}, {tsMax, 0, 6}, {tsMax, 1, -1}, {1, 1, 0}} {
		if p := listOffset(c, "t", 0, tc.ts, tc.isolation, 7); p.ErrorCode != 0 || p.Offset != tc.want {
			t.Errorf("timestamp %d, isolation %d: error %d, offset %d, want %d", tc.ts, tc.isolation, p.ErrorCode, p.Offset, tc.want)
		}
	}
}
