// Package kafka is the Kafka front: it turns requests of the Kafka protocol into
// calls of core, and their outcome into answers and error codes. One numbered
// file for each API key; the connections below are package conn's, the error
// codes package codes'. It keeps no state of its own but fetch sessions.
package kafka

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// Options are what the front needs. Zero values mean the defaults.
type Options struct {
	NodeID    int32 // 1
	ClusterID string
	// Advertise is the host:port that clients are told; empty means the address
	// that each client dialled.
	Advertise string
	Topics    *topics.Catalogue
	Txns      *txn.Coordinator // idempotent and transactional producers
	Conn      conn.Options
	Now       func() time.Time // the system's clock
	Log       *slog.Logger
}

// Server is the front.
type Server struct {
	opts Options
	net  *conn.Server
	feat []feature
}

// New makes the front; it starts nothing.
func New(o Options) (*Server, error) {
	if o.NodeID == 0 {
		o.NodeID = 1
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Conn.Log == nil {
		o.Conn.Log = o.Log
	}
	s := &Server{opts: o}
	table, err := conn.NewTable(s.apis()...)
	if err != nil {
		return nil, err
	}
	s.feat = s.features()
	s.net = conn.NewServer(o.Conn, table)
	return s, nil
}

// Serve accepts connections from l until Close; then it returns net.ErrClosed.
func (s *Server) Serve(l net.Listener) error { return s.net.Serve(l) }

// Close stops listening, lets requests that were begun end until ctx is done,
// and returns when all goroutines have ended.
func (s *Server) Close(ctx context.Context) error { return s.net.Close(ctx) }
