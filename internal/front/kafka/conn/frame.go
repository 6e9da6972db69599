package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// trustedFrame is how much of a promised length is allocated before a byte
	// of it has arrived; such frames do not count against the budget.
	trustedFrame = 4 << 10
	// growFactor is how many times what has arrived may be allocated next.
	growFactor = 8
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

// readFrame waits for the next frame. The wait for its first byte is bounded by
// the idle limit, every further step by the frame limit.
func (c *Conn) readFrame() (frame, error) {
	o := &c.srv.opts
	c.setReadDeadline(o.IdleTimeout)
	if n, err := io.ReadFull(c.nc, c.lenBuf[:1]); n == 0 {
		return frame{}, err
	}
	c.setReadDeadline(o.FrameTimeout)
	if _, err := io.ReadFull(c.nc, c.lenBuf[1:]); err != nil {
		return frame{}, &closeReason{"connection ended inside a request's length", err}
	}
	n := int64(int32(binary.BigEndian.Uint32(c.lenBuf[:])))
	if n < headerMin || n > int64(o.MaxFrame) {
		return frame{}, &closeReason{text: fmt.Sprintf(
			"request says it has %d bytes; %d to %d are accepted (is this a Kafka client?)", n, headerMin, o.MaxFrame)}
	}
	if n <= trustedFrame {
		buf := make([]byte, n)
		if _, err := io.ReadFull(c.nc, buf); err != nil {
			return frame{}, &closeReason{"connection ended inside a request", err}
		}
		return frame{data: buf}, nil
	}
	return c.readLarge(int(n))
}

// readLarge reads a frame of n bytes into a buffer that grows as bytes arrive.
func (c *Conn) readLarge(n int) (frame, error) {
	cl := c.srv.budget.open(c.evict)
	buf := make([]byte, 0, trustedFrame)
	for have := 0; ; {
		for have < cap(buf) {
			m, err := c.nc.Read(buf[have:cap(buf)])
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
