package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// producer is a producer that a test plays itself, request by request.
type producer struct {
	c     *rawConn
	txid  string // "" for one without transactions
	id    int64
	epoch int16
	later time.Duration // after the second 1, at which its batches are
}

// newProducer initialises a producer; with a transactional id it retries while the
// coordinator ends an earlier transaction.
func newProducer(c *rawConn, txid string) *producer {
	c.t.Helper()
	p := &producer{c: c, txid: txid}
	for {
		resp := call[*kmsg.InitProducerIDResponse](c, p.initRequest(-1, -1), 4)
		if resp.ErrorCode == codes.ConcurrentTransactions {
			continue
		}
		if resp.ErrorCode != codes.None {
			c.t.Fatalf("InitProducerId for %q: error %d", txid, resp.ErrorCode)
		}
		p.id, p.epoch = resp.ProducerID, resp.ProducerEpoch
		return p
	}
}

func (p *producer) initRequest(id int64, epoch int16) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	if p.txid != "" {
		req.TransactionalID = &p.txid
	}
	req.TransactionTimeoutMillis = 60_000
	req.ProducerID, req.ProducerEpoch = id, epoch
	return req
}

// batch builds a batch of this producer.
func (p *producer) batch(seq int32, values ...string) model.Batch {
	m := records.Plain(time.UnixMilli(1000).Add(p.later))
	m.ProducerID, m.ProducerEpoch, m.BaseSequence, m.Transactional = p.id, p.epoch, seq, p.txid != ""
	b := records.NewBuilder(m)
	for i, v := range values {
		b.Add(int64(i), nil, []byte(v), nil)
	}
	out, err := b.Build(0)
	if err != nil {
		p.c.t.Fatal(err)
	}
	return out
}

// send produces a batch at a version and gives the answer.
func (p *producer) send(version int16, topic string, index int32, b model.Batch) kmsg.ProduceResponseTopicPartition {
	p.c.t.Helper()
	req := produceRequest(topic, index, b)
	if p.txid != "" {
		req.TransactionID = &p.txid
	}
	return call[*kmsg.ProduceResponse](p.c, req, version).Topics[0].Partitions[0]
}

// sent is send where no error is expected; it gives the base offset.
func (p *producer) sent(version int16, topic string, index int32, b model.Batch) int64 {
	p.c.t.Helper()
	r := p.send(version, topic, index, b)
	if r.ErrorCode != codes.None {
		p.c.t.Fatalf("produce to %s-%d: error %d: %s", topic, index, r.ErrorCode, text(r.ErrorMessage))
	}
	return r.BaseOffset
}

// add sends AddPartitionsToTxn and gives the codes by partition.
func (p *producer) add(version int16, topic string, indexes ...int32) []codes.Code {
	p.c.t.Helper()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.txid, p.id, p.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: indexes}}
	var got []codes.Code
	for _, r := range call[*kmsg.AddPartitionsToTxnResponse](p.c, req, version).Topics[0].Partitions {
		got = append(got, r.ErrorCode)
	}
	return got
}

// end sends EndTxn; without an error from v5 on the producer goes on with the
// identity in the answer.
func (p *producer) end(version int16, commit bool) codes.Code {
	p.c.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.txid, p.id, p.epoch, commit
	resp := call[*kmsg.EndTxnResponse](p.c, req, version)
	if version >= 5 && resp.ErrorCode == codes.None {
		p.id, p.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return resp.ErrorCode
}

// commitOffset sends TxnOffsetCommit for one partition.
func (p *producer) commitOffset(version int16, group, member string, generation int32, topic string, offset int64) codes.Code {
	p.c.t.Helper()
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.txid, p.id, p.epoch
	req.Group, req.MemberID, req.Generation = group, member, generation
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic = topic
	o := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	o.Offset = offset
	t.Partitions = append(t.Partitions, o)
	req.Topics = append(req.Topics, t)
	return call[*kmsg.TxnOffsetCommitResponse](p.c, req, version).Topics[0].Partitions[0].ErrorCode
}

// addOffsets sends AddOffsetsToTxn.
func (p *producer) addOffsets(version int16, group string) codes.Code {
	p.c.t.Helper()
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.txid, p.id, p.epoch, group
	return call[*kmsg.AddOffsetsToTxnResponse](p.c, req, version).ErrorCode
}

// committedOffset asks for a group's offset of partition 0: the offset and the code.
func committedOffset(c *rawConn, group, topic string, stable bool) (int64, codes.Code) {
	c.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.Partitions = topic, []int32{0}
	g.Topics = append(g.Topics, t)
	req.Groups, req.RequireStable = append(req.Groups, g), stable
	r := call[*kmsg.OffsetFetchResponse](c, req, 8).Groups[0].Topics[0].Partitions[0]
	return r.Offset, r.ErrorCode
}

// fetchAll reads a partition from offset 0 with an isolation level.
func fetchAll(c *rawConn, isolation int8, topic string, index int32) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	req := fetchRequest(topic, index)
	req.IsolationLevel = isolation
	return call[*kmsg.FetchResponse](c, req, 11).Topics[0].Partitions[0]
}

// committedValues is what a read_committed consumer makes of fetchAll.
func committedValues(c *rawConn, topic string, index int32) []string {
	c.t.Helper()
	p := fetchAll(c, 1, topic, index)
	if p.ErrorCode != codes.None {
		c.t.Fatalf("fetch: error %d", p.ErrorCode)
	}
	aborted := map[int64]bool{}
	var out []string
	for _, b := range batches(c.t, p.RecordBatches) {
		if int64(b.LastOffset()) >= p.LastStableOffset {
			c.t.Fatalf("batch up to %d at or past the last stable offset %d", b.LastOffset(), p.LastStableOffset)
		}
		for _, a := range p.AbortedTransactions {
			if a.ProducerID == b.ProducerID() && a.FirstOffset == int64(b.BaseOffset()) {
				aborted[a.ProducerID] = true
			}
		}
		if b.IsControl() {
			delete(aborted, b.ProducerID())
			continue
		}
		if aborted[b.ProducerID()] {
			continue
		}
		r, err := records.Open(b, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		for {
			rec, ok, err := r.Next()
			if err != nil {
				c.t.Fatal(err)
			}
			if !ok {
				break
			}
			out = append(out, string(rec.Value))
		}
	}
	return out
}

// joinCall is a JoinGroup that is on its way.
type joinCall struct {
	req         *kmsg.JoinGroupRequest
	correlation int32
}

// joining sends JoinGroup; a member that has no id yet gets one first.
func joining(c *rawConn, group, member string) joinCall {
	c.t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 30_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0}}}
	if member == "" {
		resp := call[*kmsg.JoinGroupResponse](c, req, 5)
		if resp.ErrorCode != codes.MemberIDRequired {
			c.t.Fatalf("JoinGroup without a member id: error %d", resp.ErrorCode)
		}
		req.MemberID = resp.MemberID
	}
	req.SetVersion(5)
	return joinCall{req, c.send(req)}
}

// joined receives the answer.
func joined(c *rawConn, j joinCall) (member string, generation int32) {
	c.t.Helper()
	resp := c.receive(j.req, j.correlation).(*kmsg.JoinGroupResponse)
	if resp.ErrorCode != codes.None {
		c.t.Fatalf("JoinGroup: error %d", resp.ErrorCode)
	}
	return resp.MemberID, resp.Generation
}

// synced sends SyncGroup with an empty assignment for everybody.
func synced(c *rawConn, group, member string, generation int32) {
	c.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	if resp := call[*kmsg.SyncGroupResponse](c, req, 3); resp.ErrorCode != codes.None {
		c.t.Fatalf("SyncGroup: error %d", resp.ErrorCode)
	}
}
