// Package web is the HTTP front: metrics, health and readiness, and the debug pages
// (pprof, the machines' own state as JSON), and the few actions that no messaging
// protocol has. It knows no state of its own. Debug pages and actions are for
// loopback unless told otherwise.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options say what to serve.
type Options struct {
	// Listener is owned by the server from New on.
	Listener net.Listener
	Metrics  http.Handler
	// Ready says why the broker cannot produce and consume now, or nil.
	Ready func(context.Context) error
	// Inspect answers /debug/<path> with the state of one part; an error of
	// class not found becomes 404.
	Inspect func(ctx context.Context, path string) (any, error)
	// Do carries out POST /api/<path> with the body as its argument; errors become
	// statuses by their class. Nil: there is no API.
	Do func(ctx context.Context, path string, body []byte) (any, error)
	// DebugRemote serves the debug pages and the API on a listener that is not loopback too.
	DebugRemote bool
	Log         *slog.Logger
}

// Server is the running front.
type Server struct {
	o    Options
	http *http.Server
	done sync.WaitGroup
}

// The limits of one request.
const (
	readTimeout  = 10 * time.Second
	maxHeader    = 16 << 10
	readyTimeout = 5 * time.Second
)

// Start serves until Stop.
func Start(o Options) *Server {
	s := &Server{o: o}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: readTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	s.done.Go(func() {
		if err := s.http.Serve(o.Listener); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("http listener ended", "err", err)
		}
	})
	return s
}

// Stop ends the listener, waits for running requests until ctx is over, then cuts
// them, and joins the server's goroutine.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.done.Wait()
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.o.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", s.ready)
	if s.o.DebugRemote || isLoopback(s.o.Listener.Addr()) {
		s.debugRoutes(mux)
	} else {
		mux.HandleFunc("GET /debug/", func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusForbidden, "the debug pages are served on loopback only; bind --http to 127.0.0.1, or start with --debug-remote")
		})
	}
	return mux
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.o.Ready(ctx); err != nil {
		reply(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready", "reason": err.Error()})
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ready"})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	// The status is out; a reader that has gone cannot be told.
	_ = e.Encode(body)
}

func fail(w http.ResponseWriter, status int, text string) {
	reply(w, status, map[string]string{"error": text})
}
