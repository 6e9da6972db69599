package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

func TestRow12StaleEpochByRequestAndVersion(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	old := newProducer(c, "p")
	old.sent(12, "t", 0, old.batch(0, "x"))
	if code := old.end(5, true); code != codes.None {
		t.Fatal(code)
	}
	newProducer(c, "p")
	if r := old.send(12, "t", 0, old.batch(0, "x")); r.ErrorCode != codes.InvalidProducerEpoch {
		t.Errorf("produce: error %d", r.ErrorCode)
	}
	for v := int16(0); v <= 5; v++ {
		want := codes.ProducerFenced
		if v < 2 {
			want = codes.InvalidProducerEpoch
		}
		if v < 4 {
			if got := old.add(v, "t", 0); got[0] != want {
				t.Errorf("AddPartitionsToTxn v%d: error %d", v, got[0])
			}
		}
		if got := old.end(v, true); got != want {
			t.Errorf("EndTxn v%d: error %d", v, got)
		}
		if v <= 4 {
			if got := old.addOffsets(v, "g"); got != want {
				t.Errorf("AddOffsetsToTxn v%d: error %d", v, got)
			}
		}
		if got := old.commitOffset(v, "g", "", -1, "t", 0); got != codes.InvalidProducerEpoch {
			t.Errorf("TxnOffsetCommit v%d: error %d", v, got)
		}
	}
	for v, want := range map[int16]codes.Code{3: codes.InvalidProducerEpoch, 4: codes.ProducerFenced} {
		if r := call[*kmsg.InitProducerIDResponse](c, old.initRequest(old.id, old.epoch), v); r.ErrorCode != want {
			t.Errorf("InitProducerId v%d: error %d", v, r.ErrorCode)
		}
	}
	stranger := &producer{c: c, txid: "p", id: old.id + 1}
	if got := stranger.add(3, "t", 0); got[0] != codes.InvalidProducerIDMapping {
		t.Errorf("another producer id: error %d", got[0])
	}
	unknown := &producer{c: c, txid: "nobody"}
	if got := unknown.end(4, true); got != codes.InvalidProducerIDMapping {
		t.Errorf("an unknown transactional id: error %d", got)
	}
}

func TestRow13InitProducerID(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	p := newProducer(c, "p")
	start := func(id int64, epoch int16) *kmsg.InitProducerIDResponse {
		t.Helper()
		return call[*kmsg.InitProducerIDResponse](c, p.initRequest(id, epoch), 4)
	}
	p.sent(12, "t", 0, p.batch(0, "x"))
	if r := start(-1, -1); r.ErrorCode != codes.ConcurrentTransactions || r.ProducerID != -1 {
		t.Errorf("with an open transaction: %+v", r)
	}
	if got := committedValues(c, "t", 0); got != nil {
		t.Errorf("it shows %q", got)
	}
	r := start(-1, -1)
	if r.ErrorCode != codes.None || r.ProducerID != p.id || r.ProducerEpoch <= p.epoch {
		t.Fatalf("again: %+v", r)
	}
	bumped := start(r.ProducerID, r.ProducerEpoch)
	if bumped.ErrorCode != codes.None || bumped.ProducerEpoch != r.ProducerEpoch+1 {
		t.Errorf("KIP-360: %+v", bumped)
	}
	if again := start(r.ProducerID, r.ProducerEpoch); again.ErrorCode != codes.None || again.ProducerEpoch != bumped.ProducerEpoch {
		t.Errorf("KIP-360, repeated: %+v", again)
	}
	if r := start(p.id, p.epoch); r.ErrorCode != codes.ProducerFenced {
		t.Errorf("KIP-360, stale: %+v", r)
	}
	for _, half := range [][2]int64{{p.id, -1}, {-1, 3}} {
		if r := start(half[0], int16(half[1])); r.ErrorCode != codes.InvalidRequest {
			t.Errorf("half an identity: %+v", r)
		}
	}
	for ms, want := range map[int32]codes.Code{0: codes.InvalidTransactionTimeout, -5: codes.InvalidTransactionTimeout, 900_001: codes.InvalidTransactionTimeout, 900_000: codes.None} {
		req := p.initRequest(-1, -1)
		req.TransactionTimeoutMillis = ms
		if r := call[*kmsg.InitProducerIDResponse](c, req, 4); r.ErrorCode != want {
			t.Errorf("timeout %d: error %d", ms, r.ErrorCode)
		}
	}
	empty := p.initRequest(-1, -1)
	empty.TransactionalID = kmsg.StringPtr("")
	if r := call[*kmsg.InitProducerIDResponse](c, empty, 4); r.ErrorCode != codes.InvalidRequest {
		t.Errorf("empty transactional id: error %d", r.ErrorCode)
	}
	seen := map[int64]bool{}
	for v := int16(0); v <= 5; v++ {
		req := p.initRequest(-1, -1)
		req.TransactionalID = nil
		r := call[*kmsg.InitProducerIDResponse](c, req, v)
		if r.ErrorCode != codes.None || r.ProducerEpoch != 0 || seen[r.ProducerID] {
			t.Errorf("null id, version %d: %+v", v, r)
		}
		seen[r.ProducerID] = true
	}
}

func TestRow14TransactionsV2(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 2)
	p := newProducer(b.dial(), "p")
	first := *p
	p.sent(12, "t", 0, p.batch(0, "a"))
	p.sent(12, "t", 1, p.batch(0, "b"))
	if code := p.commitOffset(5, "g", "", -1, "t", 1); code != codes.None {
		t.Fatalf("TxnOffsetCommit: error %d", code)
	}
	if code := p.end(5, true); code != codes.None || p.id != first.id || p.epoch != first.epoch+1 {
		t.Fatalf("commit: error %d, identity %d/%d", code, p.id, p.epoch)
	}
	// The answer was lost: the same end under the old epoch.
	again := first
	if code := again.end(5, true); code != codes.None || again.epoch != p.epoch {
		t.Errorf("the commit again: error %d, epoch %d", code, again.epoch)
	}
	again = first
	if code := again.end(5, false); code != codes.InvalidTxnState {
		t.Errorf("the opposite again: error %d", code)
	}
	if code := p.end(5, true); code != codes.InvalidTxnState {
		t.Errorf("a commit of nothing: error %d", code)
	}
	if code := p.end(5, false); code != codes.None || p.epoch != first.epoch+2 {
		t.Errorf("an abort of nothing: error %d, epoch %d", code, p.epoch)
	}
	if r := first.send(12, "t", 0, first.batch(1, "late")); r.ErrorCode != codes.InvalidProducerEpoch {
		t.Errorf("a late batch: error %d", r.ErrorCode)
	}
	if got := slices.Concat(committedValues(p.c, "t", 0), committedValues(p.c, "t", 1)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("visible: %q", got)
	}
	if o, code := committedOffset(p.c, "g", "t", true); o != 1 || code != codes.None {
		t.Errorf("offset %d, error %d", o, code)
	}
}

func TestRow14AddPartitionsForBrokers(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 3)
	c := b.dial()
	p, q := newProducer(c, "p"), newProducer(c, "q")
	ask := func(verify bool, topic string, indexes ...int32) (got []codes.Code) {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		for _, x := range []*producer{p, q} {
			tx := kmsg.NewAddPartitionsToTxnRequestTransaction()
			tx.TransactionalID, tx.ProducerID, tx.ProducerEpoch, tx.VerifyOnly = x.txid, x.id, x.epoch, verify
			tx.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: topic, Partitions: indexes}}
			req.Transactions = append(req.Transactions, tx)
		}
		resp := call[*kmsg.AddPartitionsToTxnResponse](c, req, 5)
		for _, tx := range resp.Transactions {
			for _, r := range tx.Topics[0].Partitions {
				got = append(got, r.ErrorCode)
			}
		}
		return got
	}
	const no, ok = codes.TransactionAbortable, codes.None
	if got := ask(true, "t", 0, 1); !slices.Equal(got, []codes.Code{no, no, no, no}) {
		t.Errorf("verify before: %d", got)
	}
	if got := ask(false, "t", 0); !slices.Equal(got, []codes.Code{ok, ok}) {
		t.Errorf("add: %d", got)
	}
	if got := ask(true, "t", 0, 1); !slices.Equal(got, []codes.Code{ok, no, ok, no}) {
		t.Errorf("verify after: %d", got)
	}
	q.epoch--
	if got := ask(true, "t", 0); !slices.Equal(got, []codes.Code{ok, codes.ProducerFenced}) {
		t.Errorf("verify with a stale epoch: %d", got)
	}
	if got := p.add(3, "t", 1, 7); !slices.Equal(got, []codes.Code{codes.OperationNotAttempted, codes.UnknownTopicOrPartition}) {
		t.Errorf("a partition that does not exist: %d", got)
	}
}

// TestRow14EndAfterATimeout: the coordinator aborts a transaction that takes too
// long, and its producer is told that it is fenced.
func TestRow14EndAfterATimeout(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	for _, version := range []int16{4, 5} {
		p := newProducer(b.dial(), "slow")
		if got := p.add(3, "t", 0); got[0] != codes.None {
			t.Fatal(got)
		}
		p.sent(11, "t", 0, p.batch(0, "x"))
		b.ahead.Add(int64(61 * time.Second))
		waitTxn(p.c, "slow", "CompleteAbort")
		if code := p.end(version, true); code != codes.ProducerFenced {
			t.Errorf("commit, version %d: error %d", version, code)
		}
		if code := p.end(version, false); code != codes.ProducerFenced {
			t.Errorf("abort, version %d: error %d", version, code)
		}
		if r := p.send(11, "t", 0, p.batch(1, "x")); r.ErrorCode != codes.InvalidProducerEpoch {
			t.Errorf("produce: error %d", r.ErrorCode)
		}
		if got := committedValues(p.c, "t", 0); got != nil {
			t.Errorf("visible: %q", got)
		}
	}
}

// waitTxn waits until a transactional id is in a state.
func waitTxn(c *rawConn, txid, state string) {
	c.t.Helper()
	for end := time.Now().Add(20 * time.Second); describeTxn(c, txid).State != state; {
		if time.Now().After(end) {
			c.t.Fatalf("%s does not get to %s", txid, state)
		}
		time.Sleep(time.Millisecond)
	}
}

func describeTxn(c *rawConn, txid string) kmsg.DescribeTransactionsResponseTransactionState {
	c.t.Helper()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{txid}
	return call[*kmsg.DescribeTransactionsResponse](c, req, 0).TransactionStates[0]
}

func TestRow15AbortedListAndMarkers(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	p, q := newProducer(c, "p"), newProducer(c, "q")
	p.sent(12, "t", 0, p.batch(0, "p0"))       // 0
	q.sent(12, "t", 0, q.batch(0, "q1", "q2")) // 1, 2
	p.end(5, false)                            // marker 3
	r := fetchAll(c, 1, "t", 0)
	if r.LastStableOffset != 1 || r.HighWatermark != 4 || len(r.AbortedTransactions) != 1 {
		t.Errorf("q is open: %+v", r)
	}
	q.end(5, true) // marker 4
	r = fetchAll(c, 1, "t", 0)
	if r.LastStableOffset != 5 || r.HighWatermark != 5 {
		t.Errorf("all are over: %+v", r)
	}
	if got := r.AbortedTransactions; len(got) != 1 || got[0].FirstOffset != 0 || got[0].ProducerID != p.id {
		t.Errorf("aborted: %+v", got)
	}
	if got := committedValues(c, "t", 0); !slices.Equal(got, []string{"q1", "q2"}) {
		t.Errorf("visible: %q", got)
	}
	if r := fetchAll(c, 0, "t", 0); len(r.AbortedTransactions) != 0 {
		t.Errorf("read_uncommitted gets an aborted list: %+v", r.AbortedTransactions)
	}
}

// TestHangingTransaction walks the way of an operator: find it, describe it, end it.
func TestHangingTransaction(t *testing.T) {
	b := startBroker(t)
	b.topic("t", 1)
	c := b.dial()
	p := newProducer(c, "hangs/1")
	newProducer(c, "idle")
	p.sent(12, "t", 0, p.batch(0, "x", "y"))
	list := func(version int16, change func(*kmsg.ListTransactionsRequest)) (ids []string) {
		req := kmsg.NewPtrListTransactionsRequest()
		req.DurationFilterMillis = -1
		change(req)
		r := call[*kmsg.ListTransactionsResponse](c, req, version)
		for _, s := range r.TransactionStates {
			ids = append(ids, s.TransactionalID)
		}
		if r.ErrorCode != codes.None {
			ids = append(ids, "error", kerr.TypedErrorForCode(r.ErrorCode).Message)
		}
		return append(ids, r.UnknownStateFilters...)
	}
	for _, tc := range []struct {
		name    string
		version int16
		change  func(*kmsg.ListTransactionsRequest)
		want    []string
	}{
		{"all", 0, func(*kmsg.ListTransactionsRequest) {}, []string{"hangs/1", "idle"}},
		{"by state", 0, func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing"} }, []string{"hangs/1"}},
		{"by unknown state", 0, func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Odd"} }, []string{"Odd"}},
		{"by producer", 0, func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{p.id} }, []string{"hangs/1"}},
		{"by duration", 1, func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3_600_000 }, nil},
		{"by pattern", 2, func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("h.*/[0-9]") }, []string{"hangs/1"}},
		{"by part of the id", 2, func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("hangs") }, nil},
		{"by a bad pattern", 2, func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("(") }, []string{"error", "INVALID_REGULAR_EXPRESSION"}},
	} {
		if got := list(tc.version, tc.change); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if d := describeTxn(c, "hangs/1"); d.State != "Ongoing" || d.TimeoutMillis != 60_000 || d.Topics[0].Topic != "t" || d.StartTimestamp <= 0 {
		t.Errorf("described: %+v", d)
	}
	if d := describeTxn(c, "none"); d.ErrorCode != codes.TransactionalIDNotFound {
		t.Errorf("an unknown id: %+v", d)
	}
	producers := kmsg.NewPtrDescribeProducersRequest()
	producers.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "t", Partitions: []int32{0, 9}}}
	got := call[*kmsg.DescribeProducersResponse](c, producers, 0).Topics[0].Partitions
	if got[1].ErrorCode != codes.UnknownTopicOrPartition || len(got[0].ActiveProducers) != 1 {
		t.Fatalf("%+v", got)
	}
	a := got[0].ActiveProducers[0]
	if a.ProducerID != p.id || a.LastSequence != 1 || a.CurrentTxnStartOffset != 0 || a.CoordinatorEpoch != -1 {
		t.Errorf("%+v", a)
	}
	marks := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch = a.ProducerID, int16(a.ProducerEpoch)
	m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "t", Partitions: []int32{0, 9}}}
	marks.Markers = append(marks.Markers, m)
	r := call[*kmsg.WriteTxnMarkersResponse](c, marks, 1).Markers[0].Topics[0].Partitions
	if r[0].ErrorCode != codes.None || r[1].ErrorCode != codes.UnknownTopicOrPartition {
		t.Errorf("%+v", r)
	}
	if f := fetchAll(c, 1, "t", 0); f.LastStableOffset != 3 || len(f.AbortedTransactions) != 1 {
		t.Errorf("%+v", f)
	}
}
