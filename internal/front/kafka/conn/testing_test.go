package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pipeListener hands out in-memory connections, so that tests can run in a
// synctest bubble.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9092} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// fixture is a server over a table of fakes.
type fixture struct {
	*Server
	t    *testing.T
	l    *pipeListener
	logs *bytes.Buffer

	mu      sync.Mutex
	pending []func(kmsg.Response, error) // of produce requests, in order
	served  []int16                      // keys of serial requests, in order
}

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	f := &fixture{t: t, l: newPipeListener(), logs: &bytes.Buffer{}}
	o.Log = slog.New(slog.NewTextHandler(&lockedWriter{w: f.logs}, nil))
	table, err := NewTable(
		Start(3, 13, f.produce).Bulk(func(int16, []byte) (int, error) { return 1, nil }),
		Start(0, 9, f.join).Parked(),
		Handle(4, 18, f.fetch),
		Handle(0, 13, f.metadata),
		Handle(0, 5, f.versions),
	)
	if err != nil {
		t.Fatal(err)
	}
	f.Server = NewServer(o, table)
	served := make(chan error, 1)
	go func() { served <- f.Serve(f.l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f.releaseAll()
		if err := f.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return f
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func (f *fixture) produce(_ context.Context, _ *Request, _ *kmsg.ProduceRequest, done func(kmsg.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, done)
}

func (f *fixture) join(_ context.Context, _ *Request, _ *kmsg.JoinGroupRequest, done func(kmsg.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, done)
}

func (f *fixture) metadata(_ context.Context, r *Request, _ *kmsg.MetadataRequest) (kmsg.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served = append(f.served, r.Key)
	return kmsg.NewPtrMetadataResponse(), nil
}

// bulk is an answer with as many bytes as its request asks for.
type bulk struct {
	*kmsg.FetchResponse
	data []byte
}

func (b *bulk) AppendPieces(head []byte) [][]byte { return [][]byte{head, b.data} }

func (f *fixture) fetch(_ context.Context, r *Request, in *kmsg.FetchRequest) (kmsg.Response, error) {
	n := r.Room(int(in.MaxBytes))
	r.Used(n)
	return &bulk{kmsg.NewPtrFetchResponse(), make([]byte, n)}, nil
}

func (f *fixture) versions(context.Context, *Request, *kmsg.ApiVersionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ApiKeys = f.table.Ranges()
	return resp, nil
}

// waitPending waits until n produce requests are pending and takes them.
func (f *fixture) waitPending(n int) []func(kmsg.Response, error) {
	f.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		f.mu.Lock()
		if len(f.pending) >= n {
			out := f.pending[:n]
			f.pending = f.pending[n:]
			f.mu.Unlock()
			return out
		}
		have := len(f.pending)
		f.mu.Unlock()
		if time.Now().After(deadline) {
			f.t.Fatalf("%d produce requests started, want %d", have, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func (f *fixture) releaseAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, done := range f.pending {
		done(kmsg.NewPtrProduceResponse(), nil)
	}
	f.pending = nil
}

// client speaks the protocol over one connection.
type client struct {
	t *testing.T
	net.Conn
	id int32
}

func (f *fixture) dial() *client {
	c := f.l.dial()
	f.t.Cleanup(func() { _ = c.Close() })
	return &client{t: f.t, Conn: c}
}

func encodeRequest(req kmsg.Request, id int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, req, id)
}

// send writes a request and returns its correlation id.
func (c *client) send(req kmsg.Request) int32 {
	c.t.Helper()
	c.id++
	if _, err := c.Write(encodeRequest(req, c.id)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
	return c.id
}

// receive reads a response frame and gives its correlation id and body.
func (c *client) receive() (int32, []byte) {
	c.t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	return int32(binary.BigEndian.Uint32(b)), b[4:]
}

// ended waits for the broker to close.
func (c *client) ended() {
	c.t.Helper()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		c.t.Fatalf("the connection is open and gave %d bytes", n)
	}
}

func metadataRequest() kmsg.Request {
	r := kmsg.NewPtrMetadataRequest()
	r.SetVersion(12)
	return r
}

func produceRequest() *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.SetVersion(9)
	r.Acks = -1
	return r
}
