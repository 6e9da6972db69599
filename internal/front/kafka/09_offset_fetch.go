package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/groups/offsets"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// OffsetFetch, 1-10. Null topics mean all (v2+); v7 can insist on stable offsets
// (KIP-447), v8 asks for several groups (KIP-709), v9 has member epochs (KIP-848),
// v10 topic ids instead of names.
func (s *Server) offsetFetch(_ context.Context, r *conn.Request, in *kmsg.OffsetFetchRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	if r.Version >= 8 {
		for i := range in.Groups {
			resp.Groups = append(resp.Groups, s.fetchOffsets(r, &in.Groups[i], in.RequireStable))
		}
		return resp, nil
	}
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = in.Group
	if in.Topics != nil {
		one.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range in.Topics {
		one.Topics = append(one.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	got := s.fetchOffsets(r, &one, in.RequireStable)
	resp.ErrorCode = got.ErrorCode
	for _, t := range got.Topics {
		out := kmsg.NewOffsetFetchResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// fetchOffsets answers for one group.
func (s *Server) fetchOffsets(r *conn.Request, in *kmsg.OffsetFetchRequestGroup, stable bool) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = in.Group
	f := groups.Fetch{
		Group: in.Group, MemberID: orEmpty(in.MemberID), MemberEpoch: in.MemberEpoch,
		All: in.Topics == nil, RequireStable: stable,
	}
	if r.Version < 9 {
		f.MemberEpoch = -1
	}
	byID := r.Version >= 10
	names := make([]string, len(in.Topics))
	for i, t := range in.Topics {
		names[i] = t.Topic
		if byID {
			names[i] = s.topicName(t.TopicID)
		}
		if names[i] == "" && byID {
			continue // answered below
		}
		for _, p := range t.Partitions {
			f.Keys = append(f.Keys, offsets.Key{Topic: names[i], Partition: p})
		}
	}
	got, why := s.opts.Groups.Fetch(f)
	if out.ErrorCode = codes.ForReason(why); why != refusal.None {
		return out
	}
	if f.All {
		out.Topics = s.allOffsets(got, byID)
		return out
	}
	for i, t := range in.Topics {
		o := kmsg.NewOffsetFetchResponseGroupTopic()
		o.Topic, o.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			if names[i] == "" && byID {
				o.Partitions = append(o.Partitions, fetchedPartition(p, groups.Fetched{
					Commit: offsets.Commit{Offset: offsets.Offset{Offset: -1, LeaderEpoch: -1}}, Reason: refusal.UnknownTopicID,
				}))
				continue
			}
			o.Partitions = append(o.Partitions, fetchedPartition(p, got[0]))
			got = got[1:]
		}
		out.Topics = append(out.Topics, o)
	}
	return out
}

// allOffsets groups offsets by topic. By id, topics that are gone cannot be named.
func (s *Server) allOffsets(got []groups.Fetched, byID bool) []kmsg.OffsetFetchResponseGroupTopic {
	out := []kmsg.OffsetFetchResponseGroupTopic{}
	place := map[string]int{}
	for _, f := range got {
		i, ok := place[f.Topic]
		if !ok {
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic = f.Topic
			if byID {
				topic, exists := s.opts.Topics.ByName(f.Topic)
				if !exists {
					continue
				}
				t.TopicID = topic.ID
			}
			i = len(out)
			place[f.Topic] = i
			out = append(out, t)
		}
		out[i].Partitions = append(out[i].Partitions, fetchedPartition(f.Partition, f))
	}
	return out
}

func fetchedPartition(index int32, f groups.Fetched) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch = index, f.Offset.Offset, f.LeaderEpoch
	p.Metadata, p.ErrorCode = &f.Metadata, codes.ForReason(f.Reason)
	return p
}

// topicName is the name of the topic with this id, "" if there is none.
func (s *Server) topicName(id [16]byte) string {
	if t, ok := s.opts.Topics.ByID(id); ok {
		return t.Name
	}
	return ""
}
