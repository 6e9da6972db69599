package conn

import (
	"time"

	"github.com/daybook-mq/daybook/internal/obs"
)

// maxStatKey is the largest API key that is counted by itself; later ones share it.
const maxStatKey = 127

// Stats counts what a server did since it was made. Reading is safe at any time.
type Stats struct {
	Opened, Refused   obs.Counter // connections accepted, and turned away at the limit
	BytesIn, BytesOut obs.Counter // of requests and answers, lengths included

	requests [maxStatKey + 1]obs.Histogram
}

// Stats gives the server's own counts.
func (s *Server) Stats() *Stats { return &s.stats }

// Requests is the time from a request's last byte to its answer's last, of one API
// key; requests without an answer (acks=0) are left out.
func (s *Stats) Requests(key int16) *obs.Histogram {
	return &s.requests[min(max(key, 0), maxStatKey)]
}

// answered counts one answer of n bytes.
func (s *Stats) answered(r *Request, n int) {
	s.BytesOut.Add(int64(n) + 4)
	s.Requests(r.Key).Observe(time.Since(r.Received))
}

// Keys lists the API keys that are served.
func (t *Table) Keys() []int16 {
	keys := make([]int16, len(t.rows))
	for i, a := range t.rows {
		keys[i] = a.Key
	}
	return keys
}
