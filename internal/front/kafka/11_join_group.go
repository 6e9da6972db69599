package kafka

import (
	"bytes"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// JoinGroup, 0-9. v1 has a rebalance timeout of its own (KIP-62), v4 asks new
// members to come back with an id (KIP-394), v5 has static members (KIP-345), v7
// returns the protocol type, v8 has a reason (KIP-800), v9 lets a static leader
// skip the assignment (KIP-814).
func (s *Server) joinGroup(_ context.Context, r *conn.Request, in *kmsg.JoinGroupRequest, done func(kmsg.Response, error)) {
	if s.opts.Shares != nil && s.opts.Shares.Exists(in.Group) {
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.ErrorCode, resp.Generation, resp.MemberID = codes.InconsistentGroupProtocol, -1, in.MemberID
		done(resp, nil)
		return
	}
	j := classic.Join{
		MemberID: in.MemberID, InstanceID: orEmpty(in.InstanceID),
		ClientID: r.ClientID, ClientHost: clientHost(r.Conn),
		Session:      time.Duration(in.SessionTimeoutMillis) * time.Millisecond,
		Rebalance:    time.Duration(in.RebalanceTimeoutMillis) * time.Millisecond,
		ProtocolType: in.ProtocolType, Why: orEmpty(in.Reason),
		RequireKnownID: r.Version >= 4, CanSkipAssignment: r.Version >= 9,
	}
	if r.Version == 0 || j.Rebalance < 0 {
		j.Rebalance = j.Session
	}
	for _, p := range in.Protocols {
		// The group keeps it for longer than the request's frame should live.
		j.Protocols = append(j.Protocols, classic.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)})
	}
	s.opts.Groups.Join(in.Group, j, func(a classic.JoinReply) {
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.ErrorCode = codes.ForReason(a.Reason)
		resp.Generation, resp.MemberID = a.Generation, a.MemberID
		resp.LeaderID, resp.SkipAssignment = a.Leader, a.SkipAssignment
		if a.Reason == 0 {
			resp.ProtocolType, resp.Protocol = &a.ProtocolType, &a.Protocol
		}
		for _, m := range a.Members {
			out := kmsg.NewJoinGroupResponseMember()
			out.MemberID, out.InstanceID, out.ProtocolMetadata = m.ID, orNull(m.Instance), m.Metadata
			resp.Members = append(resp.Members, out)
		}
		done(resp, nil)
	})
}
