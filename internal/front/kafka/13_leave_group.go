package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// LeaveGroup, 0-5. One member before v3, a batch after (KIP-345); v5 has reasons
// (KIP-800).
func (s *Server) leaveGroup(_ context.Context, r *conn.Request, in *kmsg.LeaveGroupRequest) (kmsg.Response, error) {
	var leavers []classic.Leaver
	if r.Version < 3 {
		leavers = []classic.Leaver{{MemberID: in.MemberID}}
	}
	for _, m := range in.Members {
		leavers = append(leavers, classic.Leaver{MemberID: m.MemberID, InstanceID: orEmpty(m.InstanceID), Why: orEmpty(m.Reason)})
	}
	resp := kmsg.NewPtrLeaveGroupResponse()
	each, all := s.opts.Groups.Leave(in.Group, leavers)
	resp.ErrorCode = codes.ForReason(all)
	if all != 0 {
		return resp, nil
	}
	if r.Version < 3 {
		resp.ErrorCode = codes.ForReason(each[0])
		return resp, nil
	}
	for i, m := range in.Members {
		out := kmsg.NewLeaveGroupResponseMember()
		out.MemberID, out.InstanceID, out.ErrorCode = m.MemberID, m.InstanceID, codes.ForReason(each[i])
		resp.Members = append(resp.Members, out)
	}
	return resp, nil
}
