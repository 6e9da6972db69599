package kafka

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/groups/classic"
	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// groupOperations are the ACL operations on a group, as a bit set: read, delete,
// describe, describe configs, alter configs (KIP-430).
const groupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11

// DescribeGroups, 0-6. v4 shows instance ids; a group that does not exist is Dead,
// and from v6 on an error as well (KIP-1043).
func (s *Server) describeGroups(_ context.Context, r *conn.Request, in *kmsg.DescribeGroupsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	for _, id := range in.Groups {
		out := kmsg.NewDescribeGroupsResponseGroup()
		out.Group, out.AuthorizedOperations = id, math.MinInt32
		if in.IncludeAuthorizedOperations {
			out.AuthorizedOperations = groupOperations
		}
		d, why := s.opts.Groups.Describe(id)
		switch {
		case why == refusal.GroupNotFound && r.Version < 6:
			out.State = classic.Dead.String()
		case why == refusal.GroupNotFound:
			out.State = classic.Dead.String()
			out.ErrorCode, out.ErrorMessage = codes.GroupIDNotFound, codes.GroupText(id, why)
		case why != refusal.None:
			out.ErrorCode, out.ErrorMessage = codes.ForReason(why), codes.ReasonText(why)
		default:
			out.State, out.ProtocolType, out.Protocol = d.State.String(), d.ProtocolType, d.Protocol
		}
		for _, m := range d.Members {
			mo := kmsg.NewDescribeGroupsResponseGroupMember()
			mo.MemberID, mo.InstanceID = m.ID, orNull(m.Instance)
			mo.ClientID, mo.ClientHost = m.ClientID, m.ClientHost
			mo.ProtocolMetadata, mo.MemberAssignment = m.Metadata, m.Assignment
			out.Members = append(out.Members, mo)
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp, nil
}
