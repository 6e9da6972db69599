package kafka

import (
	"bytes"
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// SyncGroup, 0-5. v3 has static members, v5 says which protocol the member thinks
// it is in (KIP-559).
func (s *Server) syncGroup(_ context.Context, _ *conn.Request, in *kmsg.SyncGroupRequest, done func(kmsg.Response, error)) {
	y := classic.Sync{
		MemberID: in.MemberID, InstanceID: orEmpty(in.InstanceID), Generation: in.Generation,
		ProtocolType: in.ProtocolType, Protocol: in.Protocol,
		Assignments: make(map[string][]byte, len(in.GroupAssignment)),
	}
	for _, a := range in.GroupAssignment {
		y.Assignments[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	s.opts.Groups.Sync(in.Group, y, func(a classic.SyncReply) {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.ErrorCode = codes.ForReason(a.Reason)
		resp.MemberAssignment = a.Assignment
		if a.Reason == 0 {
			resp.ProtocolType, resp.Protocol = &a.ProtocolType, &a.Protocol
		}
		done(resp, nil)
	})
}
