// Package conn is the Kafka protocol below its messages: connections, frames,
// headers, the table of API keys and versions, dispatch, the order of answers,
// throttling, and the bounds that keep one client from hurting another.
//
// One goroutine reads a connection and serves its requests one after the other,
// as Kafka does. Pipelined handlers (Start) do not hold it up; while answers of
// theirs are due, a second goroutine writes them in order. The package knows no
// topic, record or group: handlers do.
package conn

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Options configure a Server. Zero values mean the defaults.
type Options struct {
	// MaxFrame is the largest request in bytes (socket.request.max.bytes; 100 MiB).
	MaxFrame int
	// MaxInFlight bounds the bytes of requests in memory, over all connections
	// (queued.max.request.bytes; 512 MiB).
	MaxInFlight int64
	// MaxAnswers bounds the bytes of bulk answers in memory, over all connections
	// (256 MiB).
	MaxAnswers int64
	// MaxConns bounds the connections (max.connections; 0 for no limit).
	MaxConns int
	// MaxPipelined bounds the pipelined requests of one connection that have no
	// answer yet (64).
	MaxPipelined int
	// IdleTimeout ends connections without requests (connections.max.idle.ms;
	// 10 min; below 0, never).
	IdleTimeout time.Duration
	// FrameTimeout is how long a begun request may take to send its next part (30 s).
	FrameTimeout time.Duration
	// WriteTimeout is how long a client may take to read a part of an answer (30 s).
	WriteTimeout time.Duration
	// Throttle, if set, says how long the connection is to be muted after this
	// answer (quotas; the answer is nil where the client expects none); it is put
	// into throttle_time_ms too. It must be short.
	Throttle func(*Request, kmsg.Response) time.Duration
	Log      *slog.Logger
}

func (o *Options) setDefaults() {
	setDefault(&o.MaxFrame, 100<<20)
	setDefault(&o.MaxInFlight, 512<<20)
	setDefault(&o.MaxAnswers, 256<<20)
	setDefault(&o.MaxPipelined, 64)
	setDefault(&o.IdleTimeout, 10*time.Minute)
	setDefault(&o.FrameTimeout, 30*time.Second)
	setDefault(&o.WriteTimeout, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Server serves connections from one table. Its zero value is not usable.
type Server struct {
	opts    Options
	table   *Table
	budget  *budget // of requests
	answers *budget
	logs    *limitedLog

	ctx     context.Context // of every handler
	cancel  context.CancelFunc
	closing <-chan struct{}
	cutoff  chan struct{} // closed when Close has waited long enough
	cutOnce sync.Once
	wg      sync.WaitGroup // connections
	open    atomic.Int64
	stats   Stats

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	conns     map[*Conn]struct{}
}

// NewServer makes a server; it starts nothing.
func NewServer(o Options, t *Table) *Server {
	o.setDefaults()
	s := &Server{
		opts: o, table: t, logs: &limitedLog{log: o.Log},
		budget:    newBudget(o.MaxInFlight, readStall, time.Now),
		answers:   newBudget(o.MaxAnswers, writeStall, time.Now),
		cutoff:    make(chan struct{}),
		listeners: map[net.Listener]struct{}{},
		conns:     map[*Conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.closing = s.ctx.Done()
	return s
}

// Table is what the server serves.
func (s *Server) Table() *Table { return s.table }

// Connections counts the open connections.
func (s *Server) Connections() int { return int(s.open.Load()) }

// Serve accepts connections from l until Close; then it returns net.ErrClosed.
// It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		return net.ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accept(nc)
			continue
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		}
		// Out of file descriptors, most often: it passes when connections end.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.logs.warn("accepting a connection", slog.Any("error", err))
		select {
		case <-time.After(pause):
		case <-s.closing:
			return net.ErrClosed
		}
	}
}

func (s *Server) accept(nc net.Conn) {
	s.mu.Lock()
	full := s.opts.MaxConns > 0 && len(s.conns) >= s.opts.MaxConns
	if s.closed || full {
		s.mu.Unlock()
		_ = nc.Close()
		if full {
			s.stats.Refused.Inc()
			s.logs.warn("connection refused: the limit of connections is reached",
				slog.String("client", nc.RemoteAddr().String()), slog.Int("limit", s.opts.MaxConns))
		}
		return
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	s.open.Add(1)
	s.stats.Opened.Inc()
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.open.Add(-1)
	}()
}

// Close stops listening, lets the requests that were begun end, and closes the
// connections; those that are not done with ctx are cut off. It returns when
// every connection's goroutines have ended.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for l := range s.listeners {
		_ = l.Close()
	}
	s.cancel()
	for c := range s.conns {
		c.stopReading()
	}
	s.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	s.cutOnce.Do(func() { close(s.cutoff) })
	s.mu.Lock()
	for c := range s.conns {
		c.cut()
	}
	s.mu.Unlock()
	<-ended
	return ctx.Err()
}
