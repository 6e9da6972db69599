package kafka

import (
	"slices"

	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// apis is the version table: what is not in it is neither advertised nor served.
// Every part adds its rows; a part without its core component adds none.
func (s *Server) apis() []conn.API {
	return slices.Concat(
		s.logAPIs(),
		s.groupAPIs(),
		s.txnAPIs(),
	)
}

// logAPIs are the rows of the log: topics, records, offsets of partitions.
func (s *Server) logAPIs() []conn.API {
	return []conn.API{
		conn.Handle(0, 5, s.apiVersions),
	}
}
