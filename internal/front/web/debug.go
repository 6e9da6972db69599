package web

import (
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
)

func (s *Server) debugRoutes(mux *http.ServeMux) {
	debug := http.NewServeMux()
	debug.HandleFunc("GET /debug/pprof/", pprof.Index)
	debug.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	debug.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	debug.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	debug.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	debug.HandleFunc("GET /debug/{path...}", func(w http.ResponseWriter, r *http.Request) {
		state, err := s.o.Inspect(r.Context(), r.PathValue("path"))
		switch {
		case err == nil:
			reply(w, http.StatusOK, state)
		case model.ClassOf(err) == model.ClassNotFound:
			fail(w, http.StatusNotFound, err.Error())
		default:
			fail(w, http.StatusInternalServerError, err.Error())
		}
	})
	mux.Handle("GET /debug/", s.localNames(debug))
}

// localNames refuses requests whose Host is a foreign name: a web page that resolves
// its own name to 127.0.0.1 (DNS rebinding) must not read the debug pages.
func (s *Server) localNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		host = strings.Trim(host, "[]")
		if !s.o.DebugRemote && host != "localhost" && net.ParseIP(host) == nil {
			fail(w, http.StatusForbidden, "the debug pages answer to localhost and to IP addresses only")
			return
		}
		next.ServeHTTP(w, r)
	})
}
