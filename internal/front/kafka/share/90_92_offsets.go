package share

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

const (
	keyDescribeOffsets = 90
	keyAlterOffsets    = 91
	keyDeleteOffsets   = 92
)

// DescribeShareGroupOffsets, 0-1. v1 has the lag. Partitions where the group has
// not begun have start offset -1; with topics null, only those where it has.
func (h *Handlers) describeOffsets(_ context.Context, _ *conn.Request, in *kmsg.DescribeShareGroupOffsetsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeShareGroupOffsetsResponse()
	for _, g := range in.Groups {
		out := kmsg.NewDescribeShareGroupOffsetsResponseGroup()
		out.GroupID = g.GroupID
		offsets, err := h.Groups.Offsets(g.GroupID)
		if err != nil {
			out.ErrorCode, out.ErrorMessage = code(keyDescribeOffsets, err)
			resp.Groups = append(resp.Groups, out)
			continue
		}
		known := map[model.PartitionID]sharegroups.Offset{}
		for _, o := range offsets {
			known[o.Part] = o
		}
		wanted := g.Topics
		if wanted == nil {
			wanted = h.begun(offsets)
		}
		for _, t := range wanted {
			out.Topics = append(out.Topics, h.offsetsOf(t, known))
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp, nil
}

// begun names the partitions where a group has begun.
func (h *Handlers) begun(offsets []sharegroups.Offset) (out []kmsg.DescribeShareGroupOffsetsRequestGroupTopic) {
	for _, o := range offsets {
		t, ok := h.Topics.ByID(o.Part.Topic)
		if !ok {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Topic == t.Name {
			out[n-1].Partitions = append(out[n-1].Partitions, o.Part.Index)
			continue
		}
		topic := kmsg.NewDescribeShareGroupOffsetsRequestGroupTopic()
		topic.Topic, topic.Partitions = t.Name, []int32{o.Part.Index}
		out = append(out, topic)
	}
	return out
}

func (h *Handlers) offsetsOf(want kmsg.DescribeShareGroupOffsetsRequestGroupTopic, known map[model.PartitionID]sharegroups.Offset) kmsg.DescribeShareGroupOffsetsResponseGroupTopic {
	out := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopic()
	out.Topic = want.Topic
	t, ok := h.Topics.ByName(want.Topic)
	if ok {
		out.TopicID = t.ID
	}
	for _, index := range want.Partitions {
		p := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopicPartition()
		p.Partition, p.StartOffset, p.Lag = index, -1, -1
		if !ok || int(index) >= len(t.Partitions) || index < 0 {
			err := codes.Errorf(codes.UnknownTopicOrPartition, "topic %q has no partition %d", want.Topic, index)
			p.ErrorCode, p.ErrorMessage = code(keyDescribeOffsets, err)
		} else if o, begun := known[model.PartitionID{Topic: t.ID, Index: index}]; begun {
			p.StartOffset, p.Lag = int64(o.Start), o.Lag
			p.LeaderEpoch = t.Partitions[index].LeaderEpoch()
		}
		out.Partitions = append(out.Partitions, p)
	}
	return out
}

// AlterShareGroupOffsets, 0: an empty group begins anew.
func (h *Handlers) alterOffsets(ctx context.Context, _ *conn.Request, in *kmsg.AlterShareGroupOffsetsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterShareGroupOffsetsResponse()
	for _, t := range in.Topics {
		out := kmsg.NewAlterShareGroupOffsetsResponseTopic()
		out.Topic = t.Topic
		topic, ok := h.Topics.ByName(t.Topic)
		if ok {
			out.TopicID = topic.ID
		}
		for _, p := range t.Partitions {
			part := kmsg.NewAlterShareGroupOffsetsResponseTopicPartition()
			part.Partition = p.Partition
			err := h.alterOffset(ctx, in.GroupID, t.Topic, topic, p.Partition, model.Offset(p.StartOffset))
			if group := groupError(err); group != nil {
				resp.ErrorCode, resp.ErrorMessage = code(keyAlterOffsets, group)
				resp.Topics = nil
				return resp, nil
			}
			part.ErrorCode, part.ErrorMessage = code(keyAlterOffsets, err)
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

func (h *Handlers) alterOffset(ctx context.Context, group, name string, t *topics.Topic, index int32, start model.Offset) error {
	if t == nil || index < 0 || int(index) >= len(t.Partitions) {
		return codes.Errorf(codes.UnknownTopicOrPartition, "topic %q has no partition %d", name, index)
	}
	if start < 0 {
		return codes.Errorf(codes.InvalidRequest, "start offset %d is negative", start)
	}
	return h.Groups.AlterOffset(ctx, group, t, index, start)
}

// groupError gives err if it is about the whole group.
func groupError(err error) error {
	switch err {
	case sharegroups.ErrNoGroup, sharegroups.ErrNotEmpty, sharegroups.ErrOtherKind:
		return err
	}
	return nil
}

// DeleteShareGroupOffsets, 0: an empty group forgets where it stands on topics.
func (h *Handlers) deleteOffsets(ctx context.Context, _ *conn.Request, in *kmsg.DeleteShareGroupOffsetsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDeleteShareGroupOffsetsResponse()
	for _, want := range in.Topics {
		out := kmsg.NewDeleteShareGroupOffsetsResponseTopic()
		out.Topic = want.Topic
		t, ok := h.Topics.ByName(want.Topic)
		if !ok {
			out.ErrorCode, out.ErrorMessage = code(keyDeleteOffsets, codes.Errorf(codes.UnknownTopicOrPartition, "topic %q does not exist", want.Topic))
			resp.Topics = append(resp.Topics, out)
			continue
		}
		out.TopicID = t.ID
		err := h.Groups.DeleteOffsets(ctx, in.GroupID, t.ID)
		if group := groupError(err); group != nil {
			resp.ErrorCode, resp.ErrorMessage = code(keyDeleteOffsets, group)
			resp.Topics = nil
			return resp, nil
		}
		out.ErrorCode, out.ErrorMessage = code(keyDeleteOffsets, err)
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
