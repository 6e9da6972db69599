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

	abandoned bool // owned by the writing goroutine

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
	p.c.throttle(p.r, resp)
	close(p.ready)
}

// run writes answers in order until the line is empty. Those that are ready
// together leave together.
func (q *replies) run() {
	var due []*pending
	for {
		q.mu.Lock()
		for i := range due {
			q.line[i] = nil
		}
		q.line = q.line[len(due):]
		q.changed.Broadcast()
		if len(q.line) == 0 {
			q.writing, q.line = false, nil
			q.mu.Unlock()
			return
		}
		due = append(due[:0], q.line...)
		broken := q.err != nil
		q.mu.Unlock()

		due = q.ready(due)
		if err := q.deliver(due, broken); err != nil {
			q.mu.Lock()
			q.err = err
			q.mu.Unlock()
			q.c.cut() // the answers behind a missing one would be taken for it
		}
	}
}

// ready waits for the first of line and gives it with those behind it that are
// ready too.
func (q *replies) ready(line []*pending) []*pending {
	if !q.await(line[0]) {
		line[0].abandoned = true
		return line[:1]
	}
	for i, p := range line[1:] {
		select {
		case <-p.ready:
		default:
			return line[:i+1]
		}
	}
	return line
}

// deliver sends the answers of due, up to the first that has an error.
func (q *replies) deliver(due []*pending, broken bool) (err error) {
	var list []answer
	for _, p := range due {
		if err == nil && !broken {
			var a answer
			if a, err = p.answer(); a.r != nil {
				list = append(list, a)
			}
		}
		p.frame.release()
	}
	if serr := q.c.send(list); err == nil {
		err = serr
	}
	return err
}

// answer is the answer's encoding; empty where the client expects none.
func (p *pending) answer() (answer, error) {
	switch {
	case p.abandoned:
		return answer{}, errAbandoned
	case p.err != nil:
		err := requestError(p.r, p.err)
		p.c.logEnd(err)
		return answer{}, err
	case p.resp == nil:
		return answer{}, nil
	}
	return encode(p.r, p.resp)
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
	a, err := encode(r, resp)
	if err != nil {
		return err
	}
	return q.c.send([]answer{a})
}

// answer is an encoded answer.
type answer struct {
	r      *Request
	pieces net.Buffers
	size   int // without the length itself
}

func encode(r *Request, resp kmsg.Response) (answer, error) {
	resp.SetVersion(r.Version)
	a := answer{r: r, size: -4}
	head := make([]byte, 4, 256)
	head = appendResponseHeader(head, r.CorrelationID, resp)
	if e, ok := resp.(Encoder); ok {
		a.pieces = e.AppendPieces(head)
	} else {
		a.pieces = net.Buffers{resp.AppendTo(head)}
	}
	for _, p := range a.pieces {
		a.size += len(p)
	}
	if a.size > math.MaxInt32 {
		return answer{}, &closeReason{text: fmt.Sprintf("answer of %d bytes to key %d is too large for the protocol", a.size, r.Key)}
	}
	binary.BigEndian.PutUint32(a.pieces[0], uint32(a.size))
	return a, nil
}

// send writes answers. Each part of them has a deadline of its own, so that a slow
// client may take long for much, but not for ever.
func (c *Conn) send(list []answer) error {
	var pieces net.Buffers
	for _, a := range list {
		pieces = append(pieces, a.pieces...)
	}
	for len(pieces) > 0 {
		var part net.Buffers
		part, pieces = cutPart(pieces)
		err := c.nc.SetWriteDeadline(time.Now().Add(c.srv.opts.WriteTimeout))
		switch {
		case err != nil:
		case len(part) == 1:
			_, err = c.nc.Write(part[0])
		default:
			_, err = part.WriteTo(c.nc)
		}
		if err != nil {
			return err
		}
		if room := list[0].r.room; room != nil {
			room.touch()
		}
	}
	for _, a := range list {
		c.srv.stats.answered(a.r, a.size)
	}
	return nil
}

// cutPart takes up to writePart bytes off pieces.
func cutPart(pieces net.Buffers) (part, rest net.Buffers) {
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
	return part, pieces
}
