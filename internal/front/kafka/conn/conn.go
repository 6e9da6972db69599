package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// anonymous is who a client is that has not said so.
const anonymous = "User:ANONYMOUS"

// Conn is one client's connection, as handlers see it.
type Conn struct {
	srv *Server
	nc  net.Conn

	replies replies // owns the write side

	// Owned by the reading goroutine. ahead holds what was read beyond the
	// length of a frame: most requests come whole with it, in one system call.
	headBuf   [headSize]byte
	ahead     []byte // a part of headBuf
	principal string
	onClose   map[any]func()

	opened    time.Time                // immutable
	software  atomic.Pointer[software] // nil until the client has said it
	requests  atomic.Int64
	evicted   atomic.Bool  // the frame being read was given up
	stopped   atomic.Bool  // no further frame is read
	muteUntil atomic.Int64 // no request is served before this time, in Unix nanoseconds
}

// software is what ApiVersions said of the client (KIP-511).
type software struct{ name, version string }

func newConn(s *Server, nc net.Conn) *Conn {
	c := &Conn{srv: s, nc: nc, principal: anonymous, opened: time.Now()}
	c.replies.init(c)
	return c
}

// LocalAddr is the address that the client dialled, as this host sees it.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr is where the client comes from.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Principal is who the client is.
func (c *Conn) Principal() string { return c.principal }

// SetSoftware notes what the client calls itself.
func (c *Conn) SetSoftware(name, version string) { c.software.Store(&software{name, version}) }

// OnClose makes f run when the connection has ended; a later f for the same key
// takes its place. It is for handlers that run one at a time (Handle).
func (c *Conn) OnClose(key any, f func()) {
	if c.onClose == nil {
		c.onClose = map[any]func(){}
	}
	c.onClose[key] = f
}

// serve reads and answers requests until the connection ends.
func (c *Conn) serve() {
	err := c.loop()
	if err != nil {
		c.logEnd(err)
	}
	if err != nil && !c.stopped.Load() {
		// Answers that are due can still go out; the client closes, or the
		// write deadline ends it.
		c.stopReading()
	}
	c.replies.end()
	_ = c.nc.Close()
	for _, f := range c.onClose {
		f()
	}
}

func (c *Conn) loop() error {
	for {
		if !c.waitMuted() {
			return nil
		}
		f, err := c.readFrame()
		if err != nil {
			return err
		}
		// A pipelined answer may have muted the connection meanwhile.
		if !c.waitMuted() {
			f.release()
			return nil
		}
		c.requests.Add(1)
		c.srv.stats.BytesIn.Add(int64(len(f.data)) + 4)
		if err := c.dispatch(f); err != nil {
			return err
		}
	}
}

// dispatch parses one frame and runs its handler. It owns f.
func (c *Conn) dispatch(f frame) error {
	r, api, in, err := c.parse(&f)
	if err != nil {
		f.release()
		return err
	}
	if api != nil && api.start != nil {
		p, err := c.replies.reserve(r, api, f)
		if err != nil {
			f.release()
			return err
		}
		api.start(c.srv.ctx, r, in, p.done)
		r.started.CompareAndSwap(0, int64(time.Since(r.Received)))
		return nil
	}
	defer f.release()
	c.replies.drain()
	if api == nil { // an ApiVersions that is newer than the broker
		return c.replies.write(r, c.srv.versionsRefused())
	}
	resp, err := api.handle(c.srv.ctx, r, in)
	if r.room != nil {
		defer r.room.release()
	}
	if err != nil {
		return requestError(r, err)
	}
	c.throttle(r, resp)
	if resp == nil {
		return nil
	}
	return c.replies.write(r, resp)
}

// requestError is why a request ends its connection.
func requestError(r *Request, err error) error {
	return &closeReason{fmt.Sprintf("key %d version %d", r.Key, r.Version), err}
}

// parse finds the request's row and decodes its body. The row is nil for an
// ApiVersions request of a version that is not served.
func (c *Conn) parse(f *frame) (*Request, *API, kmsg.Request, error) {
	h, rest, err := parseFixed(f.data)
	if err != nil {
		return nil, nil, nil, &closeReason{"unreadable request header", err}
	}
	r := &Request{
		Conn: c, Key: h.key, Version: h.version, CorrelationID: h.correlationID,
		Size: len(f.data), Received: time.Now(),
	}
	api, ok := c.srv.table.Lookup(h.key)
	if !ok {
		return nil, nil, nil, &closeReason{text: fmt.Sprintf("api key %d is not offered", h.key)}
	}
	if h.version < api.Min || h.version > api.Max {
		if h.key == keyApiVersions {
			r.Version = 0 // what the answer is written in
			return r, nil, nil, nil
		}
		return nil, nil, nil, &closeReason{text: fmt.Sprintf(
			"api key %d version %d is not offered, %d to %d are", h.key, h.version, api.Min, api.Max)}
	}
	in := api.newBody()
	in.SetVersion(h.version)
	body, err := h.parseRest(rest, in.IsFlexible())
	if err == nil {
		err = c.admit(f, api, h.version, body)
	}
	if err == nil {
		r.ClientID = h.clientID
		if u, ok := in.(kmsg.UnsafeReadFrom); ok && api.shared {
			err = u.UnsafeReadFrom(body)
		} else {
			err = in.ReadFrom(body)
		}
	}
	if err != nil {
		return nil, nil, nil, &closeReason{fmt.Sprintf("unreadable request, key %d version %d", h.key, h.version), err}
	}
	return r, api, in, nil
}

// throttle asks how long to mute the connection, and tells the client. The answer
// leaves at once; the next request waits (KIP-219).
func (c *Conn) throttle(r *Request, resp kmsg.Response) {
	if c.srv.opts.Throttle == nil {
		return
	}
	d := c.srv.opts.Throttle(r, resp)
	if d <= 0 {
		return
	}
	if t, ok := resp.(kmsg.SetThrottleResponse); ok {
		t.SetThrottle(int32(d.Milliseconds()))
	}
	c.muteUntil.Store(time.Now().Add(d).UnixNano())
}

// waitMuted waits until the connection is not muted; false when the server
// closes first.
func (c *Conn) waitMuted() bool {
	until := c.muteUntil.Load()
	if until == 0 {
		return true
	}
	c.muteUntil.CompareAndSwap(until, 0)
	t := time.NewTimer(time.Until(time.Unix(0, until)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.srv.closing:
		return false
	}
}

// setReadDeadline bounds the wait for the next bytes; below 0 there is no bound.
func (c *Conn) setReadDeadline(d time.Duration) {
	var at time.Time
	if d >= 0 {
		at = time.Now().Add(d)
	}
	_ = c.nc.SetReadDeadline(at)
	if c.stopped.Load() {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// stopReading ends the wait for the next frame, and every later one.
func (c *Conn) stopReading() {
	c.stopped.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// evict gives up the frame being read, for the budget.
func (c *Conn) evict() {
	c.evicted.Store(true)
	c.stopReading()
}

// tooSlow cuts off a client that does not read its answer, for the budget.
func (c *Conn) tooSlow() {
	c.srv.logs.warn("closing a connection", slog.String("client", c.nc.RemoteAddr().String()),
		slog.String("reason", "the client reads too slowly and others wait for the memory that its answer takes"))
	c.cut()
}

// cut ends the connection at once.
func (c *Conn) cut() {
	c.stopped.Store(true)
	_ = c.nc.Close()
}

// logEnd tells why a connection ended, when that was not the client's choice.
func (c *Conn) logEnd(err error) {
	var reason *closeReason
	switch {
	case c.stopped.Load() && !c.evicted.Load():
		return
	case errors.As(err, &reason):
		c.srv.logs.warn("closing a connection", slog.String("client", c.nc.RemoteAddr().String()),
			slog.String("reason", reason.Error()))
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF):
		c.srv.opts.Log.LogAttrs(context.Background(), slog.LevelDebug, "connection ended",
			slog.String("client", c.nc.RemoteAddr().String()), slog.Any("error", err))
	}
}

// versionsRefused is the answer to an ApiVersions request that is newer than the
// broker: version 0, which every client reads, error 35, and only what the
// broker offers of ApiVersions itself (KIP-511).
func (s *Server) versionsRefused() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = 35 // UNSUPPORTED_VERSION
	for _, k := range s.table.Ranges() {
		if k.ApiKey == keyApiVersions {
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	}
	return resp
}
