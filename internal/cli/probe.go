package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrNoBroker is that nothing listens at any of the bootstrap addresses.
var ErrNoBroker = errors.New("no broker answers")

// maxHello bounds the answer to the probe's request, in bytes.
const maxHello = 1 << 20

// probe asks the first seed that answers for its versions, so that a broker that
// is not there, or something else that listens, is told at once and by name. The
// client itself would try again until its time is over.
func (g *Globals) probe(ctx context.Context) error {
	var failures []string
	limit := min(dialTimeout, g.Timeout)
	dialer := net.Dialer{Timeout: limit}
	for _, seed := range g.Seeds() {
		if _, _, err := net.SplitHostPort(seed); err != nil {
			if !strings.Contains(err.Error(), "missing port") {
				return Usagef("--bootstrap %q: %v; write it as host:port", seed, err)
			}
			seed = net.JoinHostPort(seed, "9092")
		}
		conn, err := dialer.DialContext(ctx, "tcp", seed)
		if err == nil {
			if g.Security.wantsTLS() {
				return conn.Close() // the client's own handshake tells what is wrong
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
			_ = conn.SetDeadline(time.Now().Add(limit))
			err = hello(conn)
			stop()
			_ = conn.Close() // nothing is lost with it
			if err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if foreign, ok := errors.AsType[*HintError](err); ok {
			return Hintf(fmt.Errorf("%s %w", seed, foreign.Err), "%s", foreign.Hint)
		}
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		failures = append(failures, fmt.Sprintf("%s (%v)", seed, err))
	}
	return Hintf(fmt.Errorf("%w at %s", ErrNoBroker, strings.Join(failures, ", ")),
		"Start one with `daybook serve`, or name another with --bootstrap HOST:PORT.")
}

// hello exchanges one ApiVersions request, which any Kafka broker answers before
// a login.
func hello(conn net.Conn) error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 0
	if _, err := conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, req, 1)); err != nil {
		return err
	}
	const other = "Name the broker's Kafka address with --bootstrap HOST:PORT; use --tls when it wants TLS."
	var head [8]byte // size, correlation id
	switch n, err := io.ReadFull(conn, head[:]); {
	case n >= 1 && head[0] == 0x15: // the record type of a TLS alert
		return Hintf(errors.New("wants TLS"), "Use --tls, and --tls-ca FILE for a private authority.")
	case n >= 4 && string(head[:4]) == "HTTP":
		return Hintf(errors.New("is a web server, not a Kafka broker"), other)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Hintf(errors.New("closes the connection: it does not speak Kafka's protocol in plain text"), other)
	case err != nil:
		if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
			return Hintf(errors.New("does not answer: it is busy, or no Kafka broker"), other)
		}
		return err
	}
	if size := binary.BigEndian.Uint32(head[:]); size < 4 || size > maxHello || binary.BigEndian.Uint32(head[4:]) != 1 {
		return Hintf(errors.New("does not speak Kafka's protocol"), other)
	}
	return nil
}
