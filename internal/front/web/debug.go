package web

import (
	"io"
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
		answer(w, state, err)
	})
	mux.Handle("GET /debug/", s.localNames(debug))
	if s.o.Do != nil {
		mux.Handle("POST /api/{path...}", s.localNames(http.HandlerFunc(s.do)))
	}
}

// maxBody bounds the argument of an action, in bytes.
const maxBody = 4 << 20

func (s *Server) do(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != "application/json" {
		// A form that a foreign web page sends without asking cannot have this type.
		fail(w, http.StatusUnsupportedMediaType, "send Content-Type: application/json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	out, err := s.o.Do(r.Context(), r.PathValue("path"), body)
	answer(w, out, err)
}

func answer(w http.ResponseWriter, body any, err error) {
	switch {
	case err == nil:
		reply(w, http.StatusOK, body)
	case model.ClassOf(err) == model.ClassNotFound:
		fail(w, http.StatusNotFound, err.Error())
	case model.ClassOf(err) == model.ClassInvalid:
		fail(w, http.StatusBadRequest, err.Error())
	default:
		fail(w, http.StatusInternalServerError, err.Error())
	}
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
