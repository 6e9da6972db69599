package kafka

import (
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// describePartitionsLimit bounds the partitions of one answer
// (max.request.partition.size.limit).
const describePartitionsLimit = 2000

// DescribeTopicPartitions, 0 (KIP-966): topics in the order of their names, a
// bounded number of partitions at a time, with a cursor to go on from.
func (s *Server) describeTopicPartitions(_ context.Context, r *conn.Request, in *kmsg.DescribeTopicPartitionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	if in.Cursor != nil && in.Cursor.Partition < 0 {
		// The answer has no error of its own: Kafka ends the connection too.
		return nil, coded(codes.InvalidRequest, "the cursor names partition %d", in.Cursor.Partition)
	}
	room := max(1, min(int(in.ResponsePartitionLimit), describePartitionsLimit))
	for _, name := range s.describedNames(in) {
		first := 0
		if in.Cursor != nil && in.Cursor.Topic == name {
			first = int(in.Cursor.Partition)
		}
		t, ok := s.opts.Topics.ByName(name)
		if !ok {
			if len(in.Topics) > 0 {
				resp.Topics = append(resp.Topics, missingTopic(name))
			}
			continue
		}
		if room == 0 {
			next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
			next.Topic, next.Partition = name, 0
			resp.NextCursor = &next
			break
		}
		out, more := s.describeTopic(t, first, room)
		room -= len(out.Partitions)
		resp.Topics = append(resp.Topics, out)
		if more >= 0 {
			next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
			next.Topic, next.Partition = name, int32(more)
			resp.NextCursor = &next
			break
		}
	}
	return resp, nil
}

// describedNames lists what is asked for, from the cursor on.
func (s *Server) describedNames(in *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	for _, t := range in.Topics {
		names = append(names, t.Topic)
	}
	if len(in.Topics) == 0 {
		for _, t := range s.opts.Topics.All() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if in.Cursor != nil {
		i, _ := slices.BinarySearch(names, in.Cursor.Topic)
		names = names[i:]
	}
	return names
}

// describeTopic gives at most room partitions from first on, and the one to go on
// from; -1 at the end.
func (s *Server) describeTopic(t *topics.Topic, first, room int) (out kmsg.DescribeTopicPartitionsResponseTopic, more int) {
	out = kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, t.Internal
	out.AuthorizedOperations = topicOperations
	end := min(len(t.Partitions), first+room)
	for i := first; i < end; i++ {
		p := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		part := t.Partitions[i]
		p.Partition, p.LeaderID, p.LeaderEpoch = int32(i), s.opts.Cluster.Leader(part.ID()), part.LeaderEpoch()
		p.Replicas = []int32{p.LeaderID}
		p.ISR = p.Replicas
		p.EligibleLeaderReplicas, p.LastKnownELR = []int32{}, []int32{}
		out.Partitions = append(out.Partitions, p)
	}
	if end < len(t.Partitions) {
		return out, end
	}
	return out, -1
}

func missingTopic(name string) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic = &name
	out.AuthorizedOperations = math.MinInt32
	out.ErrorCode = codes.UnknownTopicOrPartition
	if err := topics.CheckName(name); err != nil && model.ClassOf(err) == model.ClassInvalid {
		out.ErrorCode = codes.InvalidTopicException
	}
	return out
}
