package cli

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestProbe: what listens at the bootstrap address and is no Kafka broker is
// told by what it does.
func TestProbe(t *testing.T) {
	cases := []struct {
		name   string
		answer string // sent when a request has come; "" closes at once
		hold   bool   // keep the connection open
		want   string
	}{
		{"broker", "\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", true, ""},
		{"web", "HTTP/1.1 400 Bad Request\r\n\r\n", false, "is a web server"},
		{"tls", "\x15\x03\x01\x00\x02\x02\x46", false, "wants TLS"},
		{"closing", "", false, "closes the connection"},
		{"silent", "", true, "does not answer"},
		{"other correlation", "\x00\x00\x00\x0a\x00\x00\x00\x02", true, "does not speak Kafka's protocol"},
		{"greeting", "220 mail.example ESMTP\r\n", true, "does not speak Kafka's protocol"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			done := make(chan struct{})
			defer close(done)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, c.answer)
				if c.hold {
					<-done
				}
			}()
			g := NewGlobals()
			g.Bootstrap, g.Timeout = l.Addr().String(), 300*time.Millisecond
			err = g.probe(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
			if hint, ok := errors.AsType[*HintError](err); c.want != "" && (!ok || !strings.Contains(hint.Hint, "--tls")) {
				t.Errorf("no remedy: %v", err)
			}
		})
	}
}

func TestProbeTriesEverySeed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	g := NewGlobals()
	g.Bootstrap = gone + "," + gone
	if err := g.probe(t.Context()); !errors.Is(err, ErrNoBroker) || strings.Count(err.Error(), gone) != 2 {
		t.Errorf("%v", err)
	}
}
