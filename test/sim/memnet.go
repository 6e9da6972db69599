package sim

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// memNet is a network in memory: one listener at a time for each address.
type memNet struct {
	mu        sync.Mutex
	listeners map[string]*memListener
}

func newMemNet() *memNet { return &memNet{listeners: map[string]*memListener{}} }

// listen is app.ListenFunc.
func (n *memNet) listen(_ context.Context, addr string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &memListener{net: n, addr: tcp, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// dial is kgo's dialer.
func (n *memNet) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return refuse(ctx)
	}
	client, server := net.Pipe()
	select {
	case l.conns <- memConn{server, l.addr}:
		return memConn{client, l.addr}, nil
	case <-l.closed:
		return refuse(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse answers after a while: a client that dials again at once would stop
// virtual time.
func refuse(ctx context.Context) (net.Conn, error) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

type memListener struct {
	net    *memNet
	addr   *net.TCPAddr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		delete(l.net.listeners, l.addr.String())
	})
	return nil
}

func (l *memListener) Addr() net.Addr { return l.addr }

// memConn is a pipe with the address of the listener at both ends.
type memConn struct {
	net.Conn
	addr net.Addr
}

func (c memConn) LocalAddr() net.Addr  { return c.addr }
func (c memConn) RemoteAddr() net.Addr { return c.addr }

// latency is what a message takes on its way; without it, a client that asks again
// at once would stop virtual time.
const latency = 500 * time.Microsecond

func (c memConn) Write(b []byte) (int, error) {
	time.Sleep(latency)
	return c.Conn.Write(b)
}
