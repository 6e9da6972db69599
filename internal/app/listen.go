package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// listen opens the listener of one front; nil when it is off.
func (b *Broker) listen(ctx context.Context, option, addr string) (net.Listener, error) {
	if addr == config.Off {
		return nil, nil
	}
	l, err := b.o.Listen(ctx, addr)
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

func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}

func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// openError says what to do about a data directory that cannot be opened.
func openError(dir string, err error) error {
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("data directory %s is in use by another process; stop that one, or name another directory with --data: %w", dir, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("data directory %s is not accessible to this user; change its owner, or name another directory with --data: %w", dir, err)
	default:
		return fmt.Errorf("open data directory %s: %w", dir, err)
	}
}
