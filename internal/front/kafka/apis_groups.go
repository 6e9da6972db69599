package kafka

import (
	"net"

	"github.com/daybook-mq/daybook/internal/core/groups/refusal"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// groupAPIs are the rows of consumer groups and their offsets.
func (s *Server) groupAPIs() []conn.API {
	if s.opts.Groups == nil {
		return nil
	}
	return []conn.API{
		conn.Start(2, 10, s.offsetCommit),
		conn.Handle(1, 10, s.offsetFetch),
		conn.Handle(0, 6, s.findCoordinator),
		conn.Start(0, 9, s.joinGroup).Parked(),
		conn.Handle(0, 4, s.heartbeat),
		conn.Handle(0, 5, s.leaveGroup),
		conn.Start(0, 5, s.syncGroup).Parked(),
		conn.Handle(0, 6, s.describeGroups),
		conn.Handle(0, 5, s.listGroups),
		conn.Handle(0, 3, s.deleteGroups),
		conn.Start(0, 0, s.offsetDelete),
		conn.Start(0, 1, s.consumerGroupHeartbeat),
		conn.Handle(0, 1, s.consumerGroupDescribe),
	}
}

// groupFeatures are the feature levels that groups earn.
func (s *Server) groupFeatures() []feature {
	if s.opts.Groups == nil {
		return nil
	}
	return []feature{{"group.version", 0, 1, 1}} // 1: the consumer protocol (KIP-848)
}

// orEmpty reads a nullable string; core says "" for none.
func orEmpty(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// orNull is the way back.
func orNull(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

// clientHost is the client's address as Kafka's tools show it.
func clientHost(c *conn.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		host = c.RemoteAddr().String()
	}
	return "/" + host
}

// commitCode is the code of a group-wide reason for commits. Older versions do not
// know some of them.
func commitCode(why refusal.Reason, version int16) codes.Code {
	if version < 9 {
		switch why {
		case refusal.GroupNotFound:
			return codes.IllegalGeneration
		case refusal.StaleMemberEpoch:
			return codes.UnsupportedVersion
		}
	}
	return codes.ForReason(why)
}
