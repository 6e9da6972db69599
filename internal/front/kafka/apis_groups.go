package kafka

import "github.com/daybook-mq/daybook/internal/front/kafka/conn"

// groupAPIs are the rows of consumer groups and their offsets.
func (s *Server) groupAPIs() []conn.API { return nil }

// groupFeatures are the feature levels that groups earn.
func (s *Server) groupFeatures() []feature { return nil }
