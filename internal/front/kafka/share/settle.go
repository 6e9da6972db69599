package share

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
)

// Acknowledge types of the wire (KIP-932; 4 is KIP-1222's).
const (
	ackGap     int8 = 0
	ackAccept  int8 = 1
	ackRelease int8 = 2
	ackReject  int8 = 3
	ackRenew   int8 = 4
)

// batch is an acknowledgement batch of either request.
type batch struct {
	first, last int64
	types       []int8
}

// acks are what a request says of one partition.
type acks struct {
	id      model.PartitionID
	batches []batch
}

func fetchAcks(in *kmsg.ShareFetchRequest) []acks {
	var out []acks
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			if len(p.AcknowledgementBatches) == 0 {
				continue
			}
			a := acks{id: model.PartitionID{Topic: t.TopicID, Index: p.Partition}}
			for _, b := range p.AcknowledgementBatches {
				a.batches = append(a.batches, batch{b.FirstOffset, b.LastOffset, b.AcknowledgeTypes})
			}
			out = append(out, a)
		}
	}
	return out
}

// check refuses what no client should send; nothing of such a partition is settled.
func (a acks) check(renew bool) error {
	next := int64(0)
	for _, b := range a.batches {
		switch {
		case b.first < next || b.last < b.first:
			return codes.Errorf(codes.InvalidRequest, "acknowledgement of offsets %d to %d: ranges must ascend and not overlap", b.first, b.last)
		case len(b.types) == 0 || len(b.types) > 1 && int64(len(b.types)) != b.last-b.first+1:
			return codes.Errorf(codes.InvalidRequest, "%d acknowledge types for offsets %d to %d; give one, or one for each", len(b.types), b.first, b.last)
		}
		for _, t := range b.types {
			if t < ackGap || t > ackRenew || t == ackRenew && !renew {
				return codes.Errorf(codes.InvalidRequest, "acknowledge type %d is not one that this request may hold", t)
			}
		}
		next = b.last + 1
	}
	return nil
}

// settlements turns acknowledgements into what ledgers understand, joining equal
// neighbours.
func (h *Handlers) settlements(group string, s *ledgers.Subscription, a acks) []ledger.Settlement {
	var out []ledger.Settlement
	for _, b := range a.batches {
		for i, t := range b.types {
			span := ledger.Span{First: model.Offset(b.first), Last: model.Offset(b.last)}
			if len(b.types) > 1 {
				span.First += model.Offset(i)
				span.Last = span.First
			}
			st := ledger.Settlement{Span: span}
			switch t {
			case ackRelease:
				st.Verb = ledger.Release
				st.Until = h.Groups.ReleaseUntil(group, s.Count(span.First))
			case ackReject:
				st.Verb = ledger.Reject
			case ackRenew:
				st.Verb = ledger.Renew
				st.Until = h.Now().Add(h.Groups.LockDuration(group)).UnixMilli()
			}
			if n := len(out); n > 0 && out[n-1].Verb == st.Verb && out[n-1].Last+1 == st.First && out[n-1].Until == 0 && st.Until == 0 {
				out[n-1].Last = st.Last
				continue
			}
			out = append(out, st)
		}
	}
	return out
}

// settled is the outcome of settling one partition.
type settled struct {
	id  model.PartitionID
	err error
}

// settle settles all partitions of a request at once and waits until everything is
// durable.
func (h *Handlers) settle(ctx context.Context, id sessionID, all []acks, renew bool) []settled {
	out := make([]settled, len(all))
	ch := make(chan struct{}, len(all))
	for i, a := range all {
		out[i].id = a.id
		s, err := h.subscription(ctx, id.group, a.id)
		if err == nil {
			err = a.check(renew && h.Groups.RenewAllowed(id.group))
		}
		if err != nil {
			out[i].err = err
			ch <- struct{}{}
			continue
		}
		s.Settle(id.member, h.settlements(id.group, s, a), func(errs []error, err error) {
			if err == nil {
				if bad := slices.IndexFunc(errs, func(e error) bool { return e != nil }); bad >= 0 {
					err = errs[bad]
				}
			}
			out[i].err = err
			ch <- struct{}{}
		})
	}
	for range all {
		<-ch // the journal answers every append, also when it stops
	}
	return out
}

// subscription gives the group's ledger over a partition.
func (h *Handlers) subscription(ctx context.Context, group string, id model.PartitionID) (*ledgers.Subscription, error) {
	t, err := h.topic(id.Topic)
	if err != nil {
		return nil, err
	}
	if _, ok := t.Partition(id.Index); !ok {
		return nil, codes.Errorf(codes.UnknownTopicOrPartition, "topic %q has no partition %d; refresh the metadata", t.Name, id.Index)
	}
	return h.Groups.Subscription(ctx, group, t, id.Index)
}
