package app

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/model"
)

// Ready says why the broker cannot produce and consume now, or nil: it writes a
// record durably and reads it back.
func (b *Broker) Ready(ctx context.Context) error {
	if !b.serving.Load() {
		return errors.New("starting or stopping")
	}
	return b.probe.check(ctx)
}

// inspect answers the debug pages with a part's own state.
func (b *Broker) inspect(ctx context.Context, page string) (any, error) {
	if !b.serving.Load() {
		return nil, errors.New("starting or stopping")
	}
	kind, rest, _ := strings.Cut(page, "/")
	switch kind {
	case "journal":
		return b.store.Stats(), nil
	case "clients":
		if b.kafka != nil {
			return b.kafka.Clients(), nil
		}
		return nil, notFound("the Kafka front is off; its clients")
	case "partition":
		return b.inspectPartition(rest)
	case "group":
		if d, ok := b.groups.Debug(rest); ok {
			return d, nil
		}
		return nil, notFound("group " + rest)
	case "ledger":
		return b.inspectLedgers(ctx, rest)
	}
	return nil, &model.Error{
		Class: model.ClassNotFound, Object: page,
		Detail: "no such page; there are journal, clients, partition/{topic}/{n}, group/{id}, ledger/{share group}, pprof/",
	}
}

func (b *Broker) inspectPartition(path string) (any, error) {
	topic, index, _ := strings.Cut(path, "/")
	n, err := strconv.ParseInt(index, 10, 32)
	if err != nil {
		return nil, notFound("partition " + path)
	}
	p, ok := b.resolve(topic, int32(n))
	if !ok {
		return nil, notFound("partition " + path)
	}
	return p.Debug(), nil
}

// inspectLedgers shows every ledger of a share group.
func (b *Broker) inspectLedgers(ctx context.Context, group string) (any, error) {
	if !b.shares.Exists(group) {
		return nil, notFound("share group " + group)
	}
	subs, err := b.shares.Ledgers(group)
	if err != nil {
		return nil, err
	}
	type page struct {
		Topic     string
		Partition int32
		ledgers.Debug
	}
	out := []page{}
	for _, s := range subs {
		part := s.Key().Part
		if t, ok := b.topics.ByID(part.Topic); ok {
			out = append(out, page{t.Name, part.Index, s.Debug(ctx)})
		}
	}
	return out, nil
}

func notFound(object string) error {
	return &model.Error{Class: model.ClassNotFound, Object: object, Detail: "not found"}
}
