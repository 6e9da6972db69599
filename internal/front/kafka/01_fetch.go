package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/front/kafka/session"
	"github.com/daybook-mq/daybook/internal/model"
)

const keyFetch = 1

// fetchMaxBytes bounds the records of one answer (fetch.max.bytes of a broker).
const fetchMaxBytes = 55 << 20

// Fetch, 4-18. v7 brings sessions (KIP-227), v9 leader epochs (KIP-320), v12 the
// epoch of the last fetched record (KIP-595), v13 topic ids (KIP-516); what v14 to
// v18 add concerns replicas, of which one node has none.
//
// Batches are answered as they are stored, without a look inside and without a
// copy. The first partition that has any gives at least one batch whole, however
// large; the later ones keep to the limits.

// fetchCall is one request on its way.
type fetchCall struct {
	s     *Server
	r     *conn.Request
	in    *kmsg.FetchRequest
	fetch *session.Fetch
	iso   partition.Isolation
	parts []fetchPart
	limit int // bytes of records
}

// fetchPart is one partition of a fetch, and what was found.
type fetchPart struct {
	want      *session.Partition
	topic     *topics.Topic
	p         *partition.Partition // nil when err says why
	err       error
	found     partition.ReadResult
	diverging *divergence
}

// divergence is where the client's log and the broker's part (KIP-595).
type divergence struct {
	epoch int32
	end   model.Offset
}

func (s *Server) fetch(ctx context.Context, r *conn.Request, in *kmsg.FetchRequest) (kmsg.Response, error) {
	f, code := s.sessions.Begin(sessionRequest(r.Version, in))
	if code != codes.None {
		resp := kmsg.NewPtrFetchResponse()
		resp.ErrorCode = code
		return resp, nil
	}
	defer f.End()
	c := &fetchCall{
		s: s, r: r, in: in, fetch: f, iso: partition.Isolation(in.IsolationLevel),
		parts: make([]fetchPart, len(f.Partitions)),
		limit: min(max(int(in.MaxBytes), 0), fetchMaxBytes),
	}
	for i, p := range f.Partitions {
		c.parts[i].want = p
		if i > 0 && c.parts[i-1].err == nil && p.ID == c.parts[i-1].want.ID && p.Name == c.parts[i-1].want.Name {
			c.parts[i].topic = c.parts[i-1].topic
		}
		c.resolve(&c.parts[i], r.Version)
	}
	r.Waited(c.wait(ctx))
	return c.answer(), nil
}

// sessionRequest gives the parts of a request that sessions are about.
func sessionRequest(version int16, in *kmsg.FetchRequest) session.Request {
	out := session.Request{ID: in.SessionID, Epoch: in.SessionEpoch, ByID: version >= 13}
	if version < 7 {
		out.Epoch = session.Final
	}
	n := 0
	for _, t := range in.Topics {
		n += len(t.Partitions)
	}
	out.Partitions = make([]session.Partition, 0, n)
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, session.Partition{
				Key:    session.Key{ID: t.TopicID, Name: t.Topic, Index: p.Partition},
				Offset: model.Offset(p.FetchOffset), MaxBytes: p.PartitionMaxBytes,
				LeaderEpoch: p.CurrentLeaderEpoch, LastFetchedEpoch: p.LastFetchedEpoch,
			})
		}
	}
	for _, t := range in.ForgottenTopics {
		for _, i := range t.Partitions {
			out.Forgotten = append(out.Forgotten, session.Key{ID: t.TopicID, Name: t.Topic, Index: i})
		}
	}
	return out
}

// resolve finds the partition and checks the epochs that the client sent.
func (c *fetchCall) resolve(fp *fetchPart, version int16) {
	if fp.topic == nil { // not that of the partition before
		fp.topic, fp.err = c.s.lookupTopic(fp.want.Name, fp.want.ID, version >= 13)
	}
	if fp.err != nil {
		return
	}
	p, ok := fp.topic.Partition(fp.want.Index)
	if !ok {
		fp.err = noPartition(fp.topic.Name, fp.want.Index)
		return
	}
	if fp.err = checkLeaderEpoch(fp.want.LeaderEpoch, p.LeaderEpoch()); fp.err != nil {
		return
	}
	fp.p = p
	if fp.want.LastFetchedEpoch >= 0 {
		c.checkDivergence(fp)
	}
}

// checkDivergence compares the epoch of the client's last record with the log.
func (c *fetchCall) checkDivergence(fp *fetchPart) {
	epoch, end := fp.p.EpochEnd(fp.want.LastFetchedEpoch)
	switch {
	case end < 0:
		fp.p, fp.err = nil, coded(codes.OffsetOutOfRange, "the last fetched epoch %d is not in the log", fp.want.LastFetchedEpoch)
	case epoch < fp.want.LastFetchedEpoch || end < fp.want.Offset:
		w := fp.p.Watermarks()
		fp.found.HighWatermark, fp.found.LastStable, fp.found.LogStart = w.HighWatermark, w.LastStable, w.LogStart
		fp.diverging = &divergence{epoch, end}
	}
}

// wait reads until there is enough to answer, or the client's time is over
// (KIP-74's long poll), and tells how long it waited.
func (c *fetchCall) wait(ctx context.Context) (waited time.Duration) {
	if c.read(ctx) || c.in.MaxWaitMillis <= 0 {
		return 0
	}
	w := partition.NewWaiter()
	for i := range c.parts {
		c.parts[i].p.Watch(w)
		defer c.parts[i].p.Unwatch(w)
	}
	start := time.Now()
	defer func() { waited = time.Since(start) }()
	poll, cancel := context.WithDeadline(ctx, start.Add(time.Duration(c.in.MaxWaitMillis)*time.Millisecond))
	defer cancel()
	// What came between the first read and Watch would wake nobody.
	for {
		began := time.Now()
		if c.read(ctx) || poll.Err() != nil {
			return 0
		}
		c.r.Used(0) // it is read again
		// Too little was found: a look at many partitions is not worth it for each batch.
		if pause := pauseFactor * time.Since(began); pause > pauseLeast {
			sleep(poll, pause)
		}
		select {
		case <-w.C:
		case <-poll.Done():
		}
	}
}

// A fetch that waits for more bytes spends at most one part in pauseFactor+1 of its
// time looking; pauses below pauseLeast are not worth a timer.
const (
	pauseFactor = 4
	pauseLeast  = 200 * time.Microsecond
)

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// read reads every partition once. It reports whether that is to be answered now.
func (c *fetchCall) read(ctx context.Context) (enough bool) {
	total, now := c.readInto(ctx, c.r.Room(c.limit))
	c.r.Used(total)
	return now || total >= int(c.in.MinBytes)
}

// readInto reads every partition into room bytes. now says that something is to be
// answered whatever the number of bytes.
func (c *fetchCall) readInto(ctx context.Context, room int) (total int, now bool) {
	atLeastOne, now := room > 0 || c.limit == 0, len(c.parts) == 0
	for i := range c.parts {
		fp := &c.parts[i]
		if fp.p == nil || fp.diverging != nil {
			now = true
			continue
		}
		limit := min(room, max(int(fp.want.MaxBytes), 0))
		fp.found, fp.err = fp.p.Read(ctx, fp.want.Offset, limit, atLeastOne, c.iso)
		if fp.err != nil {
			if model.ClassOf(fp.err) == model.ClassNotFound && fp.want.Name == "" {
				fp.err = coded(codes.UnknownTopicID, "%s", model.ClientText(fp.err)) // deleted meanwhile
			}
			now = true
			continue
		}
		n := fp.found.Bytes
		if n > 0 {
			atLeastOne = false
		}
		total += n
		room = max(0, room-n)
	}
	return total, now
}

// answer builds the response: in a session, only of what changed.
func (c *fetchCall) answer() *fetchResponse {
	out := &fetchResponse{FetchResponse: kmsg.NewPtrFetchResponse(), parts: c.parts[:0]}
	out.SessionID = c.fetch.ID
	for i := range c.parts {
		fp := &c.parts[i]
		if c.fetch.Include(fp.want, session.Outcome{
			HighWatermark: fp.found.HighWatermark, LogStart: fp.found.LogStart,
			HasRecords: fp.found.Bytes > 0, HasError: fp.err != nil, Diverging: fp.diverging != nil,
		}) {
			out.parts = append(out.parts, *fp)
			c.s.traffic.FetchedBytes.Add(int64(fp.found.Bytes))
		}
	}
	return out
}
