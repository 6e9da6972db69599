package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// metadataTopic is what Kafka calls the log of its metadata. Here that is the
// catalogue's own partition.
const metadataTopic = "__cluster_metadata"

// DescribeQuorum, 0-2: a quorum of one, over the catalogue's log. v2 adds nodes
// and error messages.
func (h *Handlers) describeQuorum(_ context.Context, r *conn.Request, in *kmsg.DescribeQuorumRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeQuorumResponse()
	for _, t := range in.Topics {
		out := kmsg.NewDescribeQuorumResponseTopic()
		out.Topic = t.Topic
		for _, q := range t.Partitions {
			out.Partitions = append(out.Partitions, h.quorum(r, t.Topic, q.Partition))
		}
		resp.Topics = append(resp.Topics, out)
	}
	node := kmsg.NewDescribeQuorumResponseNode()
	node.NodeID = h.NodeID
	l := kmsg.NewDescribeQuorumResponseNodeListener()
	host, port := h.Advertised(r.Conn)
	l.Name, l.Host, l.Port = "PLAINTEXT", host, uint16(port)
	node.Listeners = append(node.Listeners, l)
	resp.Nodes = append(resp.Nodes, node)
	return resp, nil
}

func (h *Handlers) quorum(r *conn.Request, topic string, index int32) kmsg.DescribeQuorumResponseTopicPartition {
	out := kmsg.NewDescribeQuorumResponseTopicPartition()
	out.Partition = index
	if topic != metadataTopic || index != 0 {
		err := codes.Errorf(codes.UnknownTopicOrPartition, "a quorum exists for %s partition 0 only", metadataTopic)
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		return out
	}
	w := h.Topics.Watermarks()
	out.LeaderID, out.LeaderEpoch, out.HighWatermark = h.NodeID, w.LeaderEpoch, int64(w.HighWatermark)
	self := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
	self.ReplicaID, self.LogEndOffset = h.NodeID, int64(w.HighWatermark)
	self.LastFetchTimestamp, self.LastCaughtUpTimestamp = r.Received.UnixMilli(), r.Received.UnixMilli()
	out.CurrentVoters = append(out.CurrentVoters, self)
	return out
}
