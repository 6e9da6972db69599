package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// writePart is how many bytes are written under one write deadline.
const writePart = 1 << 20

// Encoder is a response that encodes itself into several pieces, so that large
// parts (record batches) need not be copied. The first piece continues dst.
type Encoder interface {
	kmsg.Response
	AppendPieces(dst []byte) [][]byte
}

// replies is the write side of a connection. Answers of pipelined requests wait
// in line until they are ready; while there are any, a goroutine writes them, and
// nobody else writes. Else the reading goroutine does.
type replies struct {
	c *Conn

	gone    chan struct{} // closed when nothing more is read; nil until a line is there
	mu      sync.Mutex
	changed sync.Cond
	line    []*pending
	writing bool
	err     error // why nothing can be written any more
}

// pending is the place of one answer in the line.
type pending struct {
	c      *Conn
	r      *Request
	frame  frame
	parked bool
	ready  chan struct{}

	// Set before ready is closed.
	resp kmsg.Response
	err  error
}

func (q *replies) init(c *Conn) {
	q.c = c
	q.changed.L = &q.mu
}

// reserve takes the next place in line; it waits while the line is full.
func (q *replies) reserve(r *Request, api *API, f frame) (*pending, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.line) >= q.c.srv.opts.MaxPipelined && q.err == nil {
		q.changed.Wait()
	}
	if q.err != nil {
		return nil, q.err
	}
	if q.gone == nil {
		q.gone = make(chan struct{})
	}
	p := &pending{c: q.c, r: r, frame: f, parked: api.parked, ready: make(chan struct{})}
	q.line = append(q.line, p)
	if !q.writing {
		q.writing = true
		go q.run() // ends with the line; end joins it
	}
	return p, nil
}

// done gives the answer. A nil response sends none.
func (p *pending) done(resp kmsg.Response, err error) {
	p.resp, p.err = resp, err
	if resp != nil {
		p.c.throttle(p.r, resp)
	}
	close(p.ready)
}

// run writes answers in order until the line is empty.
func (q *replies) run() {
	for {
		q.mu.Lock()
		if len(q.line) == 0 {
			q.writing = false
			q.line = nil
			q.changed.Broadcast()
			q.mu.Unlock()
			return
		}
		p, broken := q.line[0], q.err
		q.mu.Unlock()

		err := errAbandoned
		if q.await(p) {
			err = p.err
		}
		switch {
		case errors.Is(err, errAbandoned):
		case err != nil:
			err = requestError(p.r, err)
			q.c.logEnd(err)
		case broken == nil && p.resp != nil:
			err = q.write(p.r, p.resp)
		}
		p.frame.release()

		q.mu.Lock()
		q.line[0] = nil
		q.line = q.line[1:]
		if err != nil && q.err == nil {
			q.err = err
			q.c.cut() // the answers behind a missing one would be taken for it
		}
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

var errAbandoned = errors.New("the connection ended before the answer was there")

// await waits for an answer. It gives up on a parked one when the connection
// ends, and on every one when the server's time to close is over.
func (q *replies) await(p *pending) bool {
	gone := q.gone
	if !p.parked {
		gone = nil
	}
	select {
	case <-p.ready:
		return true
	case <-gone:
	case <-q.c.srv.cutoff:
	}
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// end waits until what is due is written, after the last request was read.
func (q *replies) end() {
	q.mu.Lock()
	if q.gone != nil {
		close(q.gone)
	}
	q.mu.Unlock()
	q.drain()
}

// drain waits until the line is empty and its writer has ended.
func (q *replies) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.writing {
		q.changed.Wait()
	}
}

// write encodes and sends one answer.
func (q *replies) write(r *Request, resp kmsg.Response) error {
	resp.SetVersion(r.Version)
	head := make([]byte, 4, 256)
	head = appendResponseHeader(head, r.CorrelationID, resp)
	var pieces net.Buffers
	if e, ok := resp.(Encoder); ok {
		pieces = e.AppendPieces(head)
	} else {
		pieces = net.Buffers{resp.AppendTo(head)}
	}
	total := -4
	for _, p := range pieces {
		total += len(p)
	}
	if total > math.MaxInt32 {
		return &closeReason{text: fmt.Sprintf("answer of %d bytes to key %d is too large for the protocol", total, r.Key)}
	}
	binary.BigEndian.PutUint32(pieces[0], uint32(total))
	err := q.c.send(pieces)
	q.c.srv.stats.answered(r, total)
	return err
}

// send writes pieces; each part has a deadline of its own, so that a slow client
// may take long for much, but not for ever.
func (c *Conn) send(pieces net.Buffers) error {
	for len(pieces) > 0 {
		var part net.Buffers
		for n := 0; len(pieces) > 0 && n < writePart; {
			p := pieces[0]
			if room := writePart - n; len(p) > room {
				pieces[0] = p[room:]
				p = p[:room]
			} else {
				pieces = pieces[1:]
			}
			part = append(part, p)
			n += len(p)
		}
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.srv.opts.WriteTimeout)); err != nil {
			return err
		}
		if _, err := part.WriteTo(c.nc); err != nil {
			return err
		}
	}
	return nil
}
