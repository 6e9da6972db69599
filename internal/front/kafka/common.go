package kafka

import (
	"net"
	"strconv"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// coded is an error whose code the front decides itself.
func coded(code codes.Code, format string, args ...any) error {
	return codes.Errorf(code, format, args...)
}

// lookupTopic finds a topic by id (protocol versions that have ids) or by name.
func (s *Server) lookupTopic(name string, id [16]byte, byID bool) (*topics.Topic, error) {
	if byID {
		if t, ok := s.opts.Topics.ByID(id); ok {
			return t, nil
		}
		return nil, coded(codes.UnknownTopicID, "topic id %v does not exist; the topic was deleted or created again: refresh the metadata", model.TopicID(id))
	}
	if t, ok := s.opts.Topics.ByName(name); ok {
		return t, nil
	}
	return nil, coded(codes.UnknownTopicOrPartition, "topic %q does not exist; create it, or check its name", name)
}

func noPartition(topic string, index int32) error {
	return coded(codes.UnknownTopicOrPartition, "topic %q has no partition %d; refresh the metadata", topic, index)
}

// checkLeaderEpoch compares the leader epoch that a client knows (-1: none) with
// the partition's (KIP-320).
func checkLeaderEpoch(client, current int32) error {
	switch {
	case client < 0 || client == current:
		return nil
	case client < current:
		return coded(codes.FencedLeaderEpoch, "leader epoch %d is over, %d is current; refresh the metadata", client, current)
	}
	return coded(codes.UnknownLeaderEpoch, "leader epoch %d is not known here, %d is current; refresh the metadata", client, current)
}

// advertised is the address that a client is told for this broker: the one given
// at start, else the one that the client itself dialled, which works from the same
// host, from a container and through a tunnel.
func (s *Server) advertised(c *conn.Conn) (host string, port int32) {
	if s.advertiseHost != "" {
		return s.advertiseHost, s.advertisePort
	}
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		return a.IP.String(), int32(a.Port)
	}
	return splitAddress(c.LocalAddr().String())
}

func splitAddress(addr string) (string, int32) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	return host, int32(n)
}
