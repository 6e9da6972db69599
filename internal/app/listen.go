package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/daybook-mq/daybook/internal/config"
)

// listen opens the listener of one front; nil when it is off.
func listen(ctx context.Context, option, addr string) (net.Listener, error) {
	if addr == config.Off {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--%s: %s is taken by another process; stop it, or choose another address (port 0 picks a free one): %w", option, addr, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--%s: this user may not bind %s; choose a port above 1023: %w", option, addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--%s: %s is no address of this machine; use 127.0.0.1 or 0.0.0.0: %w", option, addr, err)
	default:
		return nil, fmt.Errorf("--%s: %w", option, err)
	}
}
