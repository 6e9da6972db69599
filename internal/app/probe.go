package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
)

// probeID is the partition that readiness writes to: one of the broker's own, beside
// the catalogue, which keeps it over restarts. It is cut to its newest records.
var probeID = model.PartitionID{Topic: topics.CatalogueID, Index: 2}

// Bounds of the probe: how long an outcome is good for, so that asking often costs
// nothing, and how many records are kept.
const (
	probeFresh = time.Second
	probeKeep  = 1000
)

// probe is a partition that is written and read to see whether the broker can.
type probe struct {
	part *partition.Partition
	now  func() time.Time

	mu   sync.Mutex // held over the write: who asks meanwhile gets the same outcome
	at   time.Time
	last error
}

func (b *Broker) openProbe(context.Context) error {
	p, err := partition.Open(b.store, probeID, partition.Settings{}, b.o.Now)
	if err != nil {
		return err
	}
	b.probe = &probe{part: p, now: b.o.Now}
	return nil
}

// check appends one record durably and reads it back.
func (p *probe) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.at.IsZero() || now.Sub(p.at) >= probeFresh {
		p.at, p.last = now, p.roundTrip(ctx)
	}
	return p.last
}

func (p *probe) roundTrip(ctx context.Context) error {
	log := statelog.New(p.part, p.now)
	type outcome struct {
		base model.Offset
		err  error
	}
	done := make(chan outcome, 1)
	err := partition.Submit([]partition.Append{log.Item([]statelog.Record{{Key: []byte("ready")}})}, func(r []partition.Result, err error) {
		o := outcome{err: err}
		if err == nil {
			o.base = r[0].Base
		}
		done <- o
	})
	if err != nil {
		return err
	}
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		return errors.New("a write has not become durable in time: the disk hangs or is overloaded")
	}
	if o.err != nil {
		return o.err
	}
	read, err := p.part.Read(ctx, o.base, 1, true, partition.ReadUncommitted)
	if err != nil {
		return err
	}
	if read.Bytes == 0 {
		return errors.New("what was written cannot be read back")
	}
	if o.base > 0 && o.base%probeKeep == 0 {
		_, err = p.part.DeleteRecords(ctx, -1)
	}
	return err
}
