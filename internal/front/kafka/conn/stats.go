package conn

import (
	"maps"
	"slices"
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

// Client is one connection as the debug page shows it.
type Client struct {
	Address  string
	Dialled  string
	Software string `json:",omitempty"` // name and version, once the client has said it
	Seconds  int64  // since it was accepted
	Requests int64
}

// Clients lists the open connections, the oldest first.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	slices.SortFunc(conns, func(a, b *Conn) int { return a.opened.Compare(b.opened) })
	out := make([]Client, len(conns))
	for i, c := range conns {
		out[i] = Client{
			Address: c.nc.RemoteAddr().String(), Dialled: c.nc.LocalAddr().String(),
			Seconds: int64(time.Since(c.opened).Seconds()), Requests: c.requests.Load(),
		}
		if w := c.software.Load(); w != nil {
			out[i].Software = w.name + " " + w.version
		}
	}
	return out
}
