package admin

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// CreateTopics, 2-7. v4 allows -1 for partitions and replication factor (the
// broker's default), v5 gives the topic's settings back, v7 its id. Topics of one
// request succeed and fail on their own; validate_only checks and creates nothing.
// v6 knows that a quota can refuse (KIP-599).
func (h *Handlers) createTopics(ctx context.Context, r *conn.Request, in *kmsg.CreateTopicsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrCreateTopicsResponse()
	twice := repeated(in.Topics, func(t kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	in.Topics = once(in.Topics, func(t kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	resp.Topics = make([]kmsg.CreateTopicsResponseTopic, len(in.Topics))
	each(len(in.Topics), func(i int) {
		q, out := &in.Topics[i], &resp.Topics[i]
		out.Default()
		out.Topic = q.Topic
		var err error
		if twice[q.Topic] {
			err = codes.Errorf(codes.InvalidRequest, "topic %q is named twice in the request", q.Topic)
		} else {
			err = h.createTopic(ctx, r, q, in.ValidateOnly, out)
		}
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
	})
	return resp, nil
}

// once drops every occurrence of a key but the first.
func once[T any, K comparable](list []T, key func(T) K) []T {
	seen := map[K]bool{}
	return slices.DeleteFunc(list, func(v T) bool {
		k := key(v)
		dup := seen[k]
		seen[k] = true
		return dup
	})
}

// createTopic creates one topic and describes it in out.
func (h *Handlers) createTopic(ctx context.Context, r *conn.Request, q *kmsg.CreateTopicsRequestTopic, validateOnly bool, out *kmsg.CreateTopicsResponseTopic) error {
	spec, err := h.topicSpec(q)
	if err != nil {
		return err
	}
	planned := spec.Partitions
	if planned < 0 {
		planned = int32(h.Topics.SettingInt("num.partitions"))
	}
	if !validateOnly {
		if err := h.mutate(r, int(planned), 6); err != nil {
			return err
		}
	}
	t, err := h.Topics.Create(ctx, spec, validateOnly)
	if err != nil {
		return err
	}
	out.TopicID = t.ID
	out.NumPartitions = planned
	out.ReplicationFactor = 1
	if h.AssumeReplicas && q.ReplicationFactor > 0 {
		out.ReplicationFactor = q.ReplicationFactor
	}
	for _, d := range h.Topics.DescribeOverrides(t.Overrides) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.Source = d.Key, &d.Value, int8(d.Source)
		out.Configs = append(out.Configs, c)
	}
	return nil
}

// topicSpec checks what a creation asks for, in the order in which Kafka does.
func (h *Handlers) topicSpec(q *kmsg.CreateTopicsRequestTopic) (topics.Spec, error) {
	spec := topics.Spec{Name: q.Topic, Partitions: q.NumPartitions, Configs: map[string]string{}}
	if err := topics.CheckName(q.Topic); err != nil {
		return spec, codes.Errorf(codes.InvalidTopicException, "%s", model.ClientText(err))
	}
	if _, ok := h.Topics.ByName(q.Topic); ok {
		return spec, codes.Errorf(codes.TopicAlreadyExists, "topic %q exists already", q.Topic)
	}
	switch n, rf := q.NumPartitions, q.ReplicationFactor; {
	case len(q.ReplicaAssignment) > 0 && (n != -1 || rf != -1):
		return spec, codes.Errorf(codes.InvalidRequest, "topic %q: with a replica assignment, partitions and replication factor must be -1", q.Topic)
	case len(q.ReplicaAssignment) > 0:
		if err := h.checkAssignment(q); err != nil {
			return spec, err
		}
		spec.Partitions = int32(len(q.ReplicaAssignment))
	case n == 0 || n < -1:
		return spec, codes.Errorf(codes.InvalidPartitions, "topic %q: %d partitions; give at least 1, or -1 for the broker's default", q.Topic, n)
	case rf == 0 || rf < -1:
		return spec, codes.Errorf(codes.InvalidReplicationFactor, "topic %q: replication factor %d; give 1, or -1 for the broker's default", q.Topic, rf)
	case rf > 1 && !h.AssumeReplicas:
		return spec, codes.Errorf(codes.InvalidReplicationFactor,
			"topic %q: replication factor %d, and there is one broker: use 1 or -1, or start the broker with --assume-replicas", q.Topic, rf)
	}
	for _, c := range q.Configs {
		if c.Value == nil {
			return spec, codes.Errorf(codes.InvalidConfig, "topic %q: setting %s has no value", q.Topic, c.Name)
		}
		spec.Configs[c.Name] = *c.Value
	}
	return spec, nil
}

// checkAssignment wants partitions 0 to n-1, each on this node.
func (h *Handlers) checkAssignment(q *kmsg.CreateTopicsRequestTopic) error {
	seen := make([]bool, len(q.ReplicaAssignment))
	for _, a := range q.ReplicaAssignment {
		if a.Partition < 0 || int(a.Partition) >= len(seen) || seen[a.Partition] {
			return codes.Errorf(codes.InvalidReplicaAssignment, "topic %q: the assignment must name partitions 0 to %d once each", q.Topic, len(seen)-1)
		}
		seen[a.Partition] = true
		if err := h.checkReplicas(a.Replicas); err != nil {
			return err
		}
	}
	return nil
}
