// Package kafka is the Kafka front: it turns requests of the Kafka protocol into
// calls of core, and their outcome into answers and error codes. One numbered
// file for each API key; the connections below are package conn's, the error
// codes package codes'. It keeps no state of its own but fetch sessions.
package kafka

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/daybook-mq/daybook/internal/cluster"
	"github.com/daybook-mq/daybook/internal/core/groups"
	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/core/txn"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/front/kafka/session"
	"github.com/daybook-mq/daybook/internal/quota"
)

// Options are what the front needs. Zero values mean the defaults.
type Options struct {
	Cluster cluster.Cluster // a solo broker 1
	// Advertise is the host:port that clients are told; empty means the address
	// that each client dialled.
	Advertise string
	Topics    *topics.Catalogue
	Groups    *groups.Coordinator // consumer groups and committed offsets
	Txns      *txn.Coordinator    // idempotent and transactional producers
	Shares    *sharegroups.Coordinator
	// AssumeReplicas makes the broker answer as if it had the replicas that
	// topics and tools ask for.
	AssumeReplicas bool
	// LogDir is the data directory as clients are told; Space gives the room on
	// its file system, in bytes.
	LogDir string
	Space  func() (total, usable int64)
	Conn   conn.Options
	Now    func() time.Time // the system's clock
	Log    *slog.Logger
}

// Server is the front.
type Server struct {
	opts     Options
	net      *conn.Server
	sessions *session.Cache
	quotas   *quota.Limiter
	feat     []feature
	traffic  Traffic

	advertiseHost string
	advertisePort int32
}

// New makes the front; it starts nothing.
func New(o Options) (*Server, error) {
	if o.Cluster == nil {
		o.Cluster = cluster.Solo{NodeID: 1}
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
	if o.Advertise != "" {
		s.advertiseHost, s.advertisePort = splitAddress(o.Advertise)
		if s.advertisePort == 0 {
			return nil, fmt.Errorf("advertised address %q is not host:port", o.Advertise)
		}
	}
	slots := 0
	if o.Topics != nil {
		s.quotas = quota.NewLimiter(o.Topics.Quotas, o.Now)
		slots = int(o.Topics.SettingInt("max.incremental.fetch.session.cache.slots"))
		o.Conn.IdleTimeout = cmp.Or(o.Conn.IdleTimeout, o.Topics.SettingMillis("connections.max.idle.ms"))
		o.Conn.MaxFrame = cmp.Or(o.Conn.MaxFrame, int(o.Topics.SettingInt("socket.request.max.bytes")))
		o.Conn.Throttle = s.throttle
	}
	s.feat = s.features()
	table, err := conn.NewTable(s.apis()...)
	if err != nil {
		return nil, err
	}
	s.sessions = session.NewCache(slots, o.Now)
	s.net = conn.NewServer(o.Conn, table)
	return s, nil
}

// Serve accepts connections from l until Close; then it returns net.ErrClosed.
func (s *Server) Serve(l net.Listener) error { return s.net.Serve(l) }

// Clients lists the open connections.
func (s *Server) Clients() []conn.Client { return s.net.Clients() }

// Close stops listening, lets requests that were begun end until ctx is done,
// and returns when all goroutines have ended.
func (s *Server) Close(ctx context.Context) error { return s.net.Close(ctx) }
