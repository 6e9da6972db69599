package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// WriteTxnMarkers, 1-2. It comes from coordinators of other brokers and from tools
// that end hanging transactions (KIP-664); v2 says which transactions protocol the
// marker belongs to (KIP-1228).
func (s *Server) writeTxnMarkers(ctx context.Context, r *conn.Request, in *kmsg.WriteTxnMarkersRequest) (kmsg.Response, error) {
	var marks []txn.Mark
	for _, m := range in.Markers {
		v := txn.V1
		if r.Version >= 2 && m.TransactionVersion >= int8(txn.V2) {
			v = txn.V2
		}
		for _, topic := range m.Topics {
			for _, i := range topic.Partitions {
				ended := txn.Ended{Topic: topic.Topic, Index: i, ProducerID: m.ProducerID, Epoch: m.ProducerEpoch, Commit: m.Committed}
				marks = append(marks, txn.Mark{Ended: ended, Version: v, CoordinatorEpoch: m.CoordinatorEpoch})
			}
		}
	}
	errs := s.opts.Txns.WriteMarks(ctx, marks)
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	for _, m := range in.Markers {
		out := kmsg.NewWriteTxnMarkersResponseMarker()
		out.ProducerID = m.ProducerID
		for _, topic := range m.Topics {
			o := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			o.Topic = topic.Topic
			for _, i := range topic.Partitions {
				code := codes.For(r.Key, errs[0])
				if errors.Is(errs[0], txn.ErrCoordinatorFenced) {
					code = codes.TransactionCoordinatorFenced
				}
				errs = errs[1:]
				o.Partitions = append(o.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: i, ErrorCode: code})
			}
			out.Topics = append(out.Topics, o)
		}
		resp.Markers = append(resp.Markers, out)
	}
	return resp, nil
}
