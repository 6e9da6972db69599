// Package producerids hands out producer ids: each at most once in the life of a
// data directory, across restarts and crashes. It owns the reservation of blocks
// of ids as records of a state log; it knows nothing of epochs, transactions or
// clients, and it never looks at a clock.
package producerids

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// blockSize is how many ids one durable record reserves. What is left of a block
// when the broker stops is never used.
const blockSize = 1000

// stateVersion is the first byte of a reservation's value.
const stateVersion = 0

// reservationKey is the one key of the log; its newest value holds.
var reservationKey = []byte("producer-ids")

// Allocator gives out producer ids. Next may be called from any goroutine.
//
// Invariant: every id below limit is covered by a durable reservation, and every
// id at or above reserved was never given to anyone, by this process or before.
type Allocator struct {
	log *statelog.Log

	mu       sync.Mutex
	next     int64        // the next id to give out, if below limit
	limit    int64        // end of the durable block in hand
	reserved int64        // end of all reservations ever made, durable or under way
	pending  *reservation // the one under way, or nil
}

// reservation is a block that is on its way to the disk.
type reservation struct {
	done chan struct{}
	err  error // set before done is closed
}

// PartitionID is where the reservations are: beside the catalogue, where no client
// sees them and no retention reaches them.
var PartitionID = model.PartitionID{Topic: topics.CatalogueID, Index: 1}

// Open reads the reservations in the store and returns an allocator that begins
// above all of them.
func Open(ctx context.Context, store *partlog.Store, now func() time.Time) (*Allocator, error) {
	p, err := partition.Open(store, PartitionID, partition.Settings{Log: partlog.Policy{Compact: true}}, now)
	if err != nil {
		return nil, fmt.Errorf("open producer ids: %w", err)
	}
	a := &Allocator{log: statelog.New(p, now)}
	if err := a.replay(ctx); err != nil {
		return nil, fmt.Errorf("open producer ids: %w", err)
	}
	return a, nil
}

func (a *Allocator) replay(ctx context.Context) error {
	err := a.log.Replay(ctx, func(e statelog.Entry) error {
		end, err := decode(e.Value)
		if err != nil {
			return fmt.Errorf("producer id reservation at offset %d: %w", e.Offset, err)
		}
		a.reserved = max(a.reserved, end)
		return nil
	})
	a.next, a.limit = a.reserved, a.reserved
	return err
}

// Next returns an id that nobody has had before. It blocks only while a new block
// becomes durable, once in blockSize calls.
func (a *Allocator) Next(ctx context.Context) (int64, error) {
	for {
		a.mu.Lock()
		if a.next < a.limit {
			id := a.next
			a.next++
			a.mu.Unlock()
			return id, nil
		}
		res, err := a.reserveLocked()
		a.mu.Unlock()
		if err != nil {
			return 0, err
		}
		select {
		case <-res.done:
			if res.err != nil {
				return 0, res.err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// reserveLocked starts a reservation, or joins the one under way. The append does
// no I/O and its callback runs on the journal's goroutine, so the lock may be held.
func (a *Allocator) reserveLocked() (*reservation, error) {
	if a.pending != nil {
		return a.pending, nil
	}
	if a.reserved > math.MaxInt64-blockSize {
		return nil, model.Err(model.ClassInternal, "all producer ids are used up")
	}
	from, to := a.reserved, a.reserved+blockSize
	res := &reservation{done: make(chan struct{})}
	rec := statelog.Record{Key: reservationKey, Value: encode(to)}
	err := a.log.Append([]statelog.Record{rec}, func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.pending = nil
		if err == nil {
			a.next, a.limit = from, to
		}
		res.err = err
		close(res.done)
	})
	if err != nil {
		return nil, err
	}
	// A reservation that fails is skipped, not reused: it may be on the disk.
	a.reserved, a.pending = to, res
	return res, nil
}

func encode(end int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{stateVersion}, uint64(end))
}

func decode(v []byte) (int64, error) {
	if len(v) != 9 || v[0] != stateVersion {
		return 0, fmt.Errorf("%d bytes that start with %v are not a reservation", len(v), v[:min(1, len(v))])
	}
	end := int64(binary.BigEndian.Uint64(v[1:]))
	if end < 0 {
		return 0, fmt.Errorf("reservation ends at %d", end)
	}
	return end, nil
}
