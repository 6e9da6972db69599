package kafka

import "github.com/daybook-mq/daybook/internal/front/kafka/conn"

// txnAPIs are the rows of idempotent and transactional producers.
func (s *Server) txnAPIs() []conn.API { return nil }

// txnFeatures are the feature levels that transactions earn.
func (s *Server) txnFeatures() []feature { return nil }
