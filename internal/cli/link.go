package cli

import (
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Link watches a client's connections, so that a command can tell a person that
// the broker has gone, and a command that must end can give up. It is a hook of
// the client (kgo.WithHooks).
type Link struct {
	note func(format string, args ...any)

	mu   sync.Mutex
	down time.Time // since when no connection could be made; zero while it can
	told bool
}

// NewLink makes a Link that tells of a loss on the error stream.
func NewLink(g *Globals) *Link { return &Link{note: g.Note} }

// OnBrokerConnect is called by the client after each attempt to connect.
func (l *Link) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		if l.told {
			l.note("The broker is back.")
		}
		l.down, l.told = time.Time{}, false
	case l.down.IsZero():
		l.down = time.Now()
	case !l.told && time.Since(l.down) > time.Second:
		l.told = true
		l.note("No broker answers (%v); trying again.", err)
	}
}

// DownFor is how long no connection could be made.
func (l *Link) DownFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down.IsZero() {
		return 0
	}
	return time.Since(l.down)
}
