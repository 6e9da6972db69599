package app

import (
	"context"

	"github.com/daybook-mq/daybook/internal/model"
)

// Ready says why the broker cannot produce and consume now, or nil.
func (b *Broker) Ready(context.Context) error { return nil }

// inspect answers the debug pages with a part's own state.
func (b *Broker) inspect(_ context.Context, path string) (any, error) {
	return nil, &model.Error{Class: model.ClassNotFound, Object: path, Detail: "no such page"}
}
