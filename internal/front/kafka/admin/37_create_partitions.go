package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// CreatePartitions, 0-3: grows topics. Records keep their partitions, so keys that
// hash elsewhere now lose their order across the change.
func (h *Handlers) createPartitions(ctx context.Context, r *conn.Request, in *kmsg.CreatePartitionsRequest) (kmsg.Response, error) {
	name := func(t kmsg.CreatePartitionsRequestTopic) string { return t.Topic }
	twice := repeated(in.Topics, name)
	in.Topics = once(in.Topics, name)
	resp := kmsg.NewPtrCreatePartitionsResponse()
	for i := range in.Topics {
		q := &in.Topics[i]
		var err error
		if twice[q.Topic] {
			err = codes.Errorf(codes.InvalidRequest, "topic %q is named twice in the request", q.Topic)
		} else {
			err = h.growTopic(ctx, r, q, in.ValidateOnly)
		}
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic, out.ErrorCode, out.ErrorMessage = q.Topic, codes.For(r.Key, err), codes.Text(err)
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

func (h *Handlers) growTopic(ctx context.Context, r *conn.Request, q *kmsg.CreatePartitionsRequestTopic, validateOnly bool) error {
	t, err := h.topic(q.Topic)
	if err != nil {
		return err
	}
	if err := notInternal(t, "grown"); err != nil {
		return err
	}
	more := int(q.Count) - len(t.Partitions)
	if q.Assignment != nil && more > 0 {
		if len(q.Assignment) != more {
			return codes.Errorf(codes.InvalidReplicaAssignment, "topic %q: %d partitions are added and %d are assigned", q.Topic, more, len(q.Assignment))
		}
		for _, a := range q.Assignment {
			if err := h.checkReplicas(a.Replicas); err != nil {
				return err
			}
		}
	}
	if more > 0 && !validateOnly {
		if err := h.mutate(r, more, 3); err != nil {
			return err
		}
	}
	return h.Topics.AddPartitions(ctx, q.Topic, q.Count, validateOnly)
}
