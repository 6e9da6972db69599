package kafka

import (
	"context"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// Coordinator types (KIP-98, KIP-932).
const (
	coordinatorGroup = 0
	coordinatorTxn   = 1
	coordinatorShare = 2
)

// FindCoordinator, 0-6. One key before v4, many after (KIP-699); v6 adds share
// keys. On one node the answer is this node, for every key that makes sense.
func (s *Server) findCoordinator(_ context.Context, r *conn.Request, in *kmsg.FindCoordinatorRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if r.Version < 4 {
		c := s.coordinator(r, in.CoordinatorType, in.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage = c.ErrorCode, c.ErrorMessage
		resp.NodeID, resp.Host, resp.Port = c.NodeID, c.Host, c.Port
		return resp, nil
	}
	for _, key := range in.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, s.coordinator(r, in.CoordinatorType, key))
	}
	return resp, nil
}

func (s *Server) coordinator(r *conn.Request, typ int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Port = key, -1, -1
	switch {
	case typ == coordinatorGroup, typ == coordinatorTxn && s.opts.Txns != nil,
		typ == coordinatorShare && r.Version >= 6 && isShareKey(key):
		c.NodeID = s.opts.Cluster.Self()
		c.Host, c.Port = s.advertised(r.Conn)
	case typ == coordinatorTxn:
		c.ErrorCode = codes.CoordinatorNotAvailable
	default:
		c.ErrorCode = codes.InvalidRequest
		text := "coordinator types are 0 (group), 1 (transaction) and, from version 6, 2 (share, with keys group:topic-id:partition)"
		c.ErrorMessage = &text
	}
	return c
}

// isShareKey holds for group:topicId:partition.
func isShareKey(key string) bool {
	parts := strings.Split(key, ":")
	if len(parts) < 3 || parts[0] == "" {
		return false
	}
	n := len(parts)
	_, errID := model.ParseTopicID(parts[n-2])
	p, errP := strconv.ParseInt(parts[n-1], 10, 32)
	return errID == nil && errP == nil && p >= 0
}
