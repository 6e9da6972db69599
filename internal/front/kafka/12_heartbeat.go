package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// Heartbeat, 0-4. v3 has static members.
func (s *Server) heartbeat(_ context.Context, _ *conn.Request, in *kmsg.HeartbeatRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = codes.ForReason(s.opts.Groups.Heartbeat(in.Group, in.MemberID, orEmpty(in.InstanceID), in.Generation))
	return resp, nil
}
