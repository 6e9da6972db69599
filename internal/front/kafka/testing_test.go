package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rawConn speaks the protocol without a client library.
type rawConn struct {
	t testing.TB
	net.Conn
	correlation int32
}

func dialRaw(t testing.TB, addr string) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &rawConn{t: t, Conn: c}
}

// send writes a request and returns its correlation id.
func (c *rawConn) send(req kmsg.Request) int32 {
	c.t.Helper()
	c.correlation++
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw")).AppendRequest(nil, req, c.correlation)); err != nil {
		c.t.Fatal(err)
	}
	return c.correlation
}

// frame reads one response frame: its correlation id and what follows.
func (c *rawConn) frame() (int32, []byte) {
	c.t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		c.t.Fatalf("reading a response: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatalf("reading a response: %v", err)
	}
	return int32(binary.BigEndian.Uint32(b)), b[4:]
}

// receive reads the answer to req.
func (c *rawConn) receive(req kmsg.Request, correlation int32) kmsg.Response {
	c.t.Helper()
	got, b := c.frame()
	if got != correlation {
		c.t.Fatalf("answer to request %d where %d was due", got, correlation)
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && resp.Key() != 18 {
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		c.t.Fatalf("answer to key %d: %v", req.Key(), err)
	}
	return resp
}

// call sends req at a version and reads its answer.
func call[R kmsg.Response](c *rawConn, req kmsg.Request, version int16) R {
	c.t.Helper()
	req.SetVersion(version)
	return c.receive(req, c.send(req)).(R)
}

// closed reports that the broker has ended the connection.
func (c *rawConn) closed() bool {
	_, err := c.Read(make([]byte, 1))
	return err == io.EOF || err != nil && !isTimeout(err)
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
