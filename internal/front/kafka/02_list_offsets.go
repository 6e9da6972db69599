package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

const keyListOffsets = 2

// The timestamps with a meaning of their own.
const (
	tsLatest          = -1
	tsEarliest        = -2
	tsMax             = -3 // v7 (KIP-734)
	tsEarliestLocal   = -4 // v8 (KIP-405)
	tsLatestTiered    = -5 // v9 (KIP-1005)
	tsEarliestPending = -6 // v11 (KIP-1023)
)

// sinceVersion tells which version of the request brought a special timestamp.
var sinceVersion = map[int64]int16{
	tsLatest: 0, tsEarliest: 0, tsMax: 7, tsEarliestLocal: 8, tsLatestTiered: 9, tsEarliestPending: 11,
}

// ListOffsets, 1-11. v2 has the isolation level, v4 leader epochs; v10 adds a
// timeout for remote storage, of which there is none here.
//
// A time later than every record is answered with offset -1 and timestamp -1 and
// no error: clients show that as none.
func (s *Server) listOffsets(ctx context.Context, r *conn.Request, in *kmsg.ListOffsetsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListOffsetsResponse()
	twice := repeatedPartitions(in)
	for i := range in.Topics {
		t := &in.Topics[i]
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		topic, err := s.lookupTopic(t.Topic, [16]byte{}, false)
		for j := range t.Partitions {
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Partition = t.Partitions[j].Partition
			found, perr := noOffset, err
			if twice[partitionName{t.Topic, p.Partition}] {
				perr = coded(codes.InvalidRequest, "the partition is named twice")
			}
			if perr == nil {
				part, ok := topic.Partition(p.Partition)
				if ok {
					found, perr = s.listOffset(ctx, part, &t.Partitions[j], r.Version, partition.Isolation(in.IsolationLevel))
				} else {
					perr = noPartition(t.Topic, p.Partition)
				}
			}
			p.ErrorCode = codes.For(keyListOffsets, perr)
			p.Offset, p.Timestamp, p.LeaderEpoch = int64(found.Offset), found.Timestamp, found.LeaderEpoch
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

var noOffset = partition.TimeOffset{Offset: -1, Timestamp: -1, LeaderEpoch: -1}

// listOffset answers for one partition.
func (s *Server) listOffset(ctx context.Context, p *partition.Partition, q *kmsg.ListOffsetsRequestTopicPartition, version int16, iso partition.Isolation) (partition.TimeOffset, error) {
	if err := checkLeaderEpoch(q.CurrentLeaderEpoch, p.LeaderEpoch()); err != nil {
		return noOffset, err
	}
	if since, known := sinceVersion[q.Timestamp]; q.Timestamp < 0 && (!known || version < since) {
		return noOffset, coded(codes.UnsupportedVersion, "timestamp %d has no meaning in version %d", q.Timestamp, version)
	}
	w := p.Watermarks()
	end := w.HighWatermark
	if iso == partition.ReadCommitted {
		end = w.LastStable
	}
	switch q.Timestamp {
	case tsLatest:
		return partition.TimeOffset{Offset: end, Timestamp: -1, LeaderEpoch: w.LeaderEpoch}, nil
	case tsEarliest, tsEarliestLocal:
		return partition.TimeOffset{Offset: w.LogStart, Timestamp: -1, LeaderEpoch: w.LeaderEpoch}, nil
	case tsLatestTiered, tsEarliestPending:
		return noOffset, nil // no remote storage
	case tsMax:
		found, err := p.MaxTimestamp(ctx)
		if err != nil || found.Offset >= end {
			return noOffset, err
		}
		return found, nil
	}
	return p.OffsetForTime(ctx, q.Timestamp, iso)
}

// partitionName is a partition as requests before topic ids name it.
type partitionName struct {
	topic string
	index int32
}

// repeatedPartitions finds what a request names more than once.
func repeatedPartitions(in *kmsg.ListOffsetsRequest) map[partitionName]bool {
	seen, twice := map[partitionName]bool{}, map[partitionName]bool{}
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			name := partitionName{t.Topic, p.Partition}
			if seen[name] {
				twice[name] = true
			}
			seen[name] = true
		}
	}
	return twice
}
