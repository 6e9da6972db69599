package kafka

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

const keyMetadata = 3

// maxAutoCreate bounds the topics that one request may create; a client that names
// more gets the rest when it asks again.
const maxAutoCreate = 100

// Metadata, 0-13. v4 says whether missing topics may be created, v8 asks for the
// operations that are allowed, v10 has topic ids, v12 may ask by id alone, v13 has
// an error for the whole answer.
//
// Missing topics are created if the broker allows it (auto.create.topics.enable),
// the request allows it, and names them; the answer holds them at once.
func (s *Server) metadata(ctx context.Context, r *conn.Request, in *kmsg.MetadataRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrMetadataResponse()
	id := s.opts.Cluster.ID()
	resp.ClusterID = &id
	resp.ControllerID = s.opts.Cluster.Self()
	resp.AuthorizedOperations = math.MinInt32
	if in.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID = s.opts.Cluster.Self()
	b.Host, b.Port = s.advertised(r.Conn)
	resp.Brokers = append(resp.Brokers, b)

	if in.Topics == nil || r.Version == 0 && len(in.Topics) == 0 {
		for _, t := range s.opts.Topics.All() {
			resp.Topics = append(resp.Topics, s.topicMetadata(t, in))
		}
		return resp, nil
	}
	m := &metadataCall{s: s, in: in, version: r.Version}
	m.create = (in.AllowAutoTopicCreation || r.Version < 4) && s.opts.Topics.Setting("auto.create.topics.enable") == "true"
	seen := make(map[topicRef]bool, len(in.Topics))
	for _, q := range in.Topics {
		ref := topicRef{id: q.TopicID}
		if q.Topic != nil {
			ref.name = *q.Topic
		}
		if !seen[ref] {
			seen[ref] = true
			resp.Topics = append(resp.Topics, m.topic(ctx, ref, q.Topic == nil))
		}
	}
	return resp, nil
}

// topicRef names a topic by id or by name.
type topicRef struct {
	id   [16]byte
	name string
}

// metadataCall is one request on its way.
type metadataCall struct {
	s       *Server
	in      *kmsg.MetadataRequest
	version int16
	create  bool
	created int
}

// topic answers for one topic that the request names.
func (m *metadataCall) topic(ctx context.Context, ref topicRef, nameless bool) kmsg.MetadataResponseTopic {
	byID := ref.id != [16]byte{}
	var t *topics.Topic
	var err error
	switch {
	case m.version < 12 && (byID || nameless):
		err = coded(codes.InvalidRequest, "topic ids can be asked for from version 12 on")
	case byID:
		t, err = m.s.lookupTopic("", ref.id, true)
	default:
		t, err = m.byName(ctx, ref.name)
	}
	if err == nil {
		return m.s.topicMetadata(t, m.in)
	}
	out := kmsg.NewMetadataResponseTopic()
	out.ErrorCode = codes.For(keyMetadata, err)
	out.TopicID = ref.id
	if !byID || m.version < 12 {
		out.Topic = &ref.name
	}
	return out
}

// byName finds a topic, or creates it where that is allowed.
func (m *metadataCall) byName(ctx context.Context, name string) (*topics.Topic, error) {
	if t, ok := m.s.opts.Topics.ByName(name); ok {
		return t, nil
	}
	if err := topics.CheckName(name); err != nil {
		return nil, coded(codes.InvalidTopicException, "%s", model.ClientText(err))
	}
	missing := coded(codes.UnknownTopicOrPartition, "topic %q does not exist", name)
	if !m.create || m.created >= maxAutoCreate {
		return nil, missing
	}
	m.created++
	t, err := m.s.opts.Topics.Create(ctx, topics.Spec{Name: name, Partitions: -1}, false)
	if err != nil && model.ClassOf(err) == model.ClassExists {
		return nil, missing // another request was faster; the client asks again
	}
	return t, err
}

// topicMetadata describes a topic that exists.
func (s *Server) topicMetadata(t *topics.Topic, in *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, t.Internal
	if in.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = topicOperations
	}
	var replicas []int32 // most partitions share the slice
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		q := &out.Partitions[i]
		q.Default()
		q.Partition, q.Leader, q.LeaderEpoch = int32(i), s.opts.Cluster.Leader(p.ID()), p.LeaderEpoch()
		if len(replicas) == 0 || replicas[0] != q.Leader {
			replicas = []int32{q.Leader}
		}
		q.Replicas, q.ISR = replicas, replicas
	}
	return out
}

// Bits of the operations that a client may do, by Kafka's ACL operation numbers:
// without an authorizer, all that apply.
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)
