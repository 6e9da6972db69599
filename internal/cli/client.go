package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// clientID is how our commands show up in a broker's logs and group listings.
const clientID = "daybook-cli"

// dialTimeout bounds the first attempt at each bootstrap address.
const dialTimeout = 3 * time.Second

// Conn is a connection to a cluster: the plain client and its administrative
// view. Close ends both.
type Conn struct {
	*kgo.Client
	Admin *kadm.Client
}

// Connect reaches a broker, or says at once that none answers. Options are
// added to those that the global flags ask for.
func (g *Globals) Connect(ctx context.Context, opts ...kgo.Opt) (*Conn, error) {
	if err := g.probe(ctx); err != nil {
		return nil, err
	}
	base, err := g.ClientOptions()
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, Usagef("%v", err)
	}
	admin := kadm.NewClient(cl)
	admin.SetTimeoutMillis(int32(min(g.Timeout.Milliseconds(), 1<<30)))
	return &Conn{Client: cl, Admin: admin}, nil
}

// ClientOptions are the client options that the global flags ask for.
func (g *Globals) ClientOptions() ([]kgo.Opt, error) {
	secure, err := g.Security.options()
	if err != nil {
		return nil, err
	}
	return append([]kgo.Opt{
		kgo.SeedBrokers(g.Seeds()...),
		kgo.ClientID(clientID),
		kgo.DialTimeout(dialTimeout),
		kgo.RetryTimeout(g.Timeout),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}, secure...), nil
}

// Limit bounds one administrative step by --timeout.
func (g *Globals) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, g.Timeout, &HintError{
		Err:  fmt.Errorf("no answer from %s within %s", g.Bootstrap, g.Timeout),
		Hint: "Look at the broker's log, or wait longer with --timeout 60s.",
	})
}
