package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const (
	// headSize is what a connection keeps for reading ahead.
	headSize = 256
	// trustedFrame is how much of a promised length is allocated before a byte
	// of it has arrived; such frames do not count against the budget.
	trustedFrame = 4 << 10
	// growFactor is how many times what has arrived may be allocated next.
	growFactor = 8
	// maxPlainFrame bounds requests that carry no bulk data: their bytes become
	// many times as much memory when they are decoded.
	maxPlainFrame = 16 << 20
	// decodeFactor is the most that a body grows by when it is decoded: an array
	// element of two bytes becomes a struct of 64.
	decodeFactor = 32
	// countedFrame is the size from which on the growth is taken from the budget.
	countedFrame = 64 << 10
	// elementSize is what a counted element takes when it is decoded and answered.
	elementSize = 256
	// maxElements bounds the elements of a counted body.
	maxElements = 1_000_000
	// budgetWait is how long a frame waits for the budget before its
	// connection is closed.
	budgetWait = 10 * time.Second
)

var errEvicted = errors.New("a half-sent request was given up to make room for others")

// closeReason is why the broker ends a connection; it is logged.
type closeReason struct {
	text  string
	cause error
}

func (e *closeReason) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

func (e *closeReason) Unwrap() error { return e.cause }

// frame is one request as it came, without its length.
type frame struct {
	data  []byte
	claim *claim // nil for small frames
}

func (f *frame) release() {
	if f.claim != nil {
		f.claim.release()
		f.claim = nil
	}
}

// admit takes from the budget, before f is decoded, what that will need.
func (c *Conn) admit(f *frame, api *API, version int16, body []byte) error {
	need := int64(0)
	switch {
	case api.count != nil:
		n, err := api.count(version, body)
		if err != nil {
			return err
		}
		if n > maxElements {
			return fmt.Errorf("%d array elements; at most %d are accepted", n, maxElements)
		}
		need = int64(n) * elementSize
	default:
		need = int64(len(body)) * decodeFactor
	}
	if need < countedFrame*decodeFactor {
		return nil
	}
	if f.claim == nil {
		f.claim = c.srv.budget.open(func() {})
		f.claim.complete()
	}
	if !f.claim.grow(need, budgetWait, c.srv.closing) {
		return errors.New("no room to decode it: too many large requests at once")
	}
	return nil
}

// readFrame waits for the next frame. The wait for its first byte is bounded by
// the idle limit, every further step by the frame limit.
func (c *Conn) readFrame() (frame, error) {
	o := &c.srv.opts
	c.setReadDeadline(o.IdleTimeout)
	if len(c.ahead) == 0 {
		n, err := c.nc.Read(c.headBuf[:])
		if n == 0 {
			return frame{}, err
		}
		c.ahead = c.headBuf[:n]
	}
	c.setReadDeadline(o.FrameTimeout)
	var length [4]byte
	if err := c.readFull(length[:]); err != nil {
		return frame{}, &closeReason{"connection ended inside a request's length", err}
	}
	n := int64(int32(binary.BigEndian.Uint32(length[:])))
	if n < headerMin || n > int64(o.MaxFrame) {
		return frame{}, &closeReason{text: fmt.Sprintf(
			"request says it has %d bytes; %d to %d are accepted (is this a Kafka client?)", n, headerMin, o.MaxFrame)}
	}
	if n <= trustedFrame {
		buf := make([]byte, n)
		if err := c.readFull(buf); err != nil {
			return frame{}, &closeReason{"connection ended inside a request", err}
		}
		return frame{data: buf}, nil
	}
	return c.readLarge(int(n))
}

// read takes what was read ahead, else it reads from the connection.
func (c *Conn) read(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.nc.Read(p)
}

func (c *Conn) readFull(p []byte) error {
	for len(p) > 0 {
		n, err := c.read(p)
		p = p[n:]
		if err != nil && len(p) > 0 {
			return err
		}
	}
	return nil
}

// readLarge reads a frame of n bytes into a buffer that grows as bytes arrive.
func (c *Conn) readLarge(n int) (frame, error) {
	cl := c.srv.budget.open(c.evict)
	buf := make([]byte, 0, trustedFrame)
	for have := 0; ; {
		for have < cap(buf) {
			m, err := c.read(buf[have:cap(buf)])
			have += m
			if err != nil && have < n {
				cl.release()
				if c.evicted.Load() {
					err = errEvicted
				}
				return frame{}, &closeReason{"connection ended inside a request", err}
			}
			cl.touch()
		}
		if err := c.srv.checkSize(buf[:have], n); err != nil {
			cl.release()
			return frame{}, err
		}
		if have == n {
			cl.complete()
			return frame{data: buf[:n:n], claim: cl}, nil
		}
		next := min(n, have*growFactor)
		if !cl.grow(int64(next)-cl.size(), budgetWait, c.srv.closing) {
			cl.release()
			return frame{}, &closeReason{text: fmt.Sprintf(
				"no room for a request of %d bytes: too many large requests at once", n)}
		}
		c.setReadDeadline(c.srv.opts.FrameTimeout)
		grown := make([]byte, have, next)
		copy(grown, buf[:have])
		buf = grown
	}
}

// checkSize refuses a large frame, of n bytes in all, whose key carries no bulk
// data; begun is its first part.
func (s *Server) checkSize(begun []byte, n int) error {
	h, _, err := parseFixed(begun)
	if err != nil || n <= maxPlainFrame {
		return err
	}
	if api, ok := s.table.Lookup(h.key); ok && api.count != nil {
		return nil
	}
	return &closeReason{text: fmt.Sprintf("request of %d bytes; at most %d are accepted for key %d", n, maxPlainFrame, h.key)}
}
