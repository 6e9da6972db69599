package share

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

const (
	keyShareFetch = 78

	// acquireBatches is the acquire mode that ends at batch boundaries (KIP-1206).
	acquireBatches int8 = 0
	// defaultRecords is what a member gets that names no number.
	defaultRecords = 500
)

// ShareFetch, 1-2. A request first settles what it acknowledges, then fetches
// from the partitions of its session. v2 brings renewal (KIP-1222) and the
// acquire mode (KIP-1206).
func (h *Handlers) fetch(ctx context.Context, r *conn.Request, in *kmsg.ShareFetchRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrShareFetchResponse()
	id, err := sessionOf(in.GroupID, in.MemberID)
	all := fetchAcks(in)
	if err == nil {
		err = checkFetch(in, all)
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(keyShareFetch, err)
		return resp, nil
	}
	s, c := h.sessions.use(r.Conn, id, in.ShareSessionEpoch, h.ended)
	if c != codes.None {
		resp.ErrorCode = c
		return resp, nil
	}
	resp.AcquisitionLockTimeoutMillis = int32(h.Groups.LockDuration(id.group).Milliseconds())
	f := &fetchCall{h: h, in: in, s: s, out: answers{}}
	for _, o := range h.settle(ctx, id, all, in.IsRenewAck) {
		a := f.out.of(o.id)
		a.AcknowledgeErrorCode, a.AcknowledgeErrorMessage = code(keyShareFetch, o.err)
	}
	switch {
	case in.ShareSessionEpoch == epochFinal:
		h.sessions.drop(s)
		h.Groups.Release(id.group, id.member)
	case !in.IsRenewAck:
		f.update()
		f.wait(ctx)
	}
	resp.Topics = f.out.topics()
	return resp, nil
}

// ended gives back what a member held whose connection is gone.
func (h *Handlers) ended(id sessionID) { h.Groups.Release(id.group, id.member) }

func sessionOf(group, member *string) (sessionID, error) {
	if group == nil || *group == "" || member == nil || *member == "" {
		return sessionID{}, codes.Errorf(codes.InvalidRequest, "the request names no group or no member")
	}
	return sessionID{*group, *member}, nil
}

func checkFetch(in *kmsg.ShareFetchRequest, all []acks) error {
	switch {
	case in.ShareSessionEpoch == epochInitial && len(all) > 0:
		return codes.Errorf(codes.InvalidRequest, "the first request of a share session cannot acknowledge")
	case in.IsRenewAck && (in.MaxRecords != 0 || in.MaxBytes != 0 || in.MinBytes != 0 || in.MaxWaitMillis != 0):
		return codes.Errorf(codes.InvalidRequest, "a request that renews locks cannot fetch: its limits must be 0")
	}
	return nil
}

// fetchCall is one request on its way.
type fetchCall struct {
	h       *Handlers
	in      *kmsg.ShareFetchRequest
	s       *session
	subs    []*ledgers.Subscription
	out     answers
	got     int // records
	bytes   int
	refused bool // some partition has an error to tell
}

// update takes the partitions that the request names into the session.
func (f *fetchCall) update() {
	for _, t := range f.in.Topics {
		for _, p := range t.Partitions {
			f.s.add(model.PartitionID{Topic: t.TopicID, Index: p.Partition})
		}
	}
	for _, t := range f.in.ForgottenTopicsData {
		for _, p := range t.Partitions {
			f.s.forget(model.PartitionID{Topic: t.TopicID, Index: p})
		}
	}
}

// wait acquires until there is something to answer or the time is over.
func (f *fetchCall) wait(ctx context.Context) {
	f.open(ctx)
	if f.acquire(ctx) || f.in.MaxWaitMillis <= 0 || len(f.subs) == 0 {
		return
	}
	w := partition.NewWaiter()
	for _, s := range f.subs {
		s.Watch(w)
		defer s.Unwatch(w)
	}
	deadline := time.NewTimer(time.Duration(f.in.MaxWaitMillis) * time.Millisecond)
	defer deadline.Stop()
	for !f.acquire(ctx) {
		select {
		case <-w.C:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// open finds the ledgers of the session's partitions.
func (f *fetchCall) open(ctx context.Context) {
	turn := f.s.turn()
	if f.h.Groups.ByPriority(f.s.id.group) {
		slices.SortStableFunc(turn, func(a, b model.PartitionID) int { return int(b.Index) - int(a.Index) })
	}
	for _, id := range turn {
		s, err := f.h.subscription(ctx, f.s.id.group, id)
		if err != nil {
			f.fail(id, err)
			continue
		}
		f.subs = append(f.subs, s)
	}
}

func (f *fetchCall) fail(id model.PartitionID, err error) {
	a := f.out.of(id)
	a.ErrorCode, a.ErrorMessage = code(keyShareFetch, err)
	f.refused = true
}

// acquire takes what is ready now. It reports whether that is to be answered.
func (f *fetchCall) acquire(ctx context.Context) (enough bool) {
	limit := int(f.in.MaxRecords)
	if limit <= 0 {
		limit = defaultRecords
	}
	maxBytes := min(max(int(f.in.MaxBytes), 0), fetchMaxBytes)
	for _, s := range f.subs {
		if f.got >= limit || f.bytes > 0 && f.bytes >= maxBytes {
			break
		}
		until := f.h.Now().Add(f.h.Groups.LockDuration(f.s.id.group)).UnixMilli()
		got, err := s.Acquire(ctx, f.s.id.member, ledgers.Want{
			Records: limit - f.got, Bytes: max(1, maxBytes-f.bytes), Until: until,
			WholeBatches: f.in.ShareAcquireMode == acquireBatches,
		})
		if err != nil {
			f.fail(s.Key().Part, err)
			continue
		}
		if len(got.Deliveries) > 0 {
			f.take(s.Key().Part, got)
		}
	}
	return f.got > 0 || f.refused
}

func (f *fetchCall) take(id model.PartitionID, got ledgers.Fetched) {
	a := f.out.of(id)
	for _, d := range got.Data {
		a.Records = append(a.Records, d...)
		f.bytes += len(d)
	}
	for _, d := range got.Deliveries {
		f.got += int(d.Len())
		rec := kmsg.NewShareFetchResponseTopicPartitionAcquiredRecord()
		rec.FirstOffset, rec.LastOffset, rec.DeliveryCount = int64(d.First), int64(d.Last), int16(min(d.Count, 32767))
		a.AcquiredRecords = append(a.AcquiredRecords, rec)
	}
}

// answers gathers what is answered for each partition, in the order in which
// partitions come up.
type answers map[model.TopicID][]*kmsg.ShareFetchResponseTopicPartition

func (a answers) of(id model.PartitionID) *kmsg.ShareFetchResponseTopicPartition {
	for _, p := range a[id.Topic] {
		if p.Partition == id.Index {
			return p
		}
	}
	p := kmsg.NewShareFetchResponseTopicPartition()
	p.Partition = id.Index
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 0, 0
	a[id.Topic] = append(a[id.Topic], &p)
	return &p
}

func (a answers) topics() []kmsg.ShareFetchResponseTopic {
	out := make([]kmsg.ShareFetchResponseTopic, 0, len(a))
	for id, parts := range a {
		t := kmsg.NewShareFetchResponseTopic()
		t.TopicID = id
		for _, p := range parts {
			t.Partitions = append(t.Partitions, *p)
		}
		out = append(out, t)
	}
	return out
}
