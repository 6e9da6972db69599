package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// topicRef names a topic by name or by id.
type topicRef struct {
	name string
	id   [16]byte
}

// DeleteTopics, 1-6. v6 may name topics by id.
func (h *Handlers) deleteTopics(ctx context.Context, r *conn.Request, in *kmsg.DeleteTopicsRequest) (kmsg.Response, error) {
	for i := range in.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &in.TopicNames[i]
		in.Topics = append(in.Topics, t)
	}
	ref := func(t kmsg.DeleteTopicsRequestTopic) topicRef {
		k := topicRef{id: t.TopicID}
		if t.Topic != nil {
			k.name = *t.Topic
		}
		return k
	}
	twice := repeated(in.Topics, ref)
	in.Topics = once(in.Topics, ref)
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(in.Topics))
	each(len(in.Topics), func(i int) {
		q, out := &in.Topics[i], &resp.Topics[i]
		out.Default()
		out.Topic, out.TopicID = q.Topic, q.TopicID
		var err error
		if twice[ref(*q)] {
			err = codes.Errorf(codes.InvalidRequest, "the topic is named twice in the request")
		} else {
			err = h.deleteTopic(ctx, r, q, out)
		}
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
	})
	return resp, nil
}

func (h *Handlers) deleteTopic(ctx context.Context, r *conn.Request, q *kmsg.DeleteTopicsRequestTopic, out *kmsg.DeleteTopicsResponseTopic) error {
	byID := q.TopicID != [16]byte{}
	var t *topics.Topic
	var err error
	switch {
	case byID == (q.Topic != nil):
		return codes.Errorf(codes.InvalidRequest, "name a topic by its name or by its id, not by both and not by neither")
	case h.Topics.Setting("delete.topic.enable") == "false":
		return codes.Errorf(codes.TopicDeletionDisabled, "delete.topic.enable is false")
	case byID:
		var ok bool
		if t, ok = h.Topics.ByID(q.TopicID); !ok {
			return codes.Errorf(codes.UnknownTopicID, "topic id %v does not exist", model.TopicID(q.TopicID))
		}
	default:
		if t, err = h.topic(*q.Topic); err != nil {
			return err
		}
	}
	out.Topic, out.TopicID = &t.Name, t.ID
	if err := notInternal(t, "deleted"); err != nil {
		return err
	}
	if err := h.mutate(r, len(t.Partitions), 5); err != nil {
		return err
	}
	return h.Topics.Delete(ctx, t.ID)
}
