package kafka

import (
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/obs"
)

// Traffic counts the records that went through.
type Traffic struct {
	Produced      obs.Counter // records of acknowledged batches, repeats included
	ProducedBytes obs.Counter // of these batches
	FetchedBytes  obs.Counter // of batches in answers to fetches
}

// Traffic gives the counts of records.
func (s *Server) Traffic() *Traffic { return &s.traffic }

// Stats gives the counts of the connections and requests.
func (s *Server) Stats() *conn.Stats { return s.net.Stats() }

// Connections counts the open connections.
func (s *Server) Connections() int { return s.net.Connections() }

// Keys lists the API keys that are served.
func (s *Server) Keys() []int16 { return s.net.Table().Keys() }

// produced counts one durable batch.
func (t *Traffic) produced(records int32, bytes int) {
	t.Produced.Add(int64(records))
	t.ProducedBytes.Add(int64(bytes))
}
