package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/daybook-mq/daybook/internal/model"
)

// do carries out the actions that no messaging protocol has:
//
//	share-groups/{group}/redrive  settled records become ready again for the group
//	share-groups/{group}/unpark   keys that a dead record closed are opened
func (b *Broker) do(ctx context.Context, path string, body []byte) (any, error) {
	if !b.serving.Load() {
		return nil, errors.New("starting or stopping")
	}
	rest, ok := strings.CutPrefix(path, "share-groups/")
	group, action, found := cutLast(rest)
	if !ok || !found {
		return nil, noAction(path)
	}
	switch action {
	case "redrive":
		return b.redrive(ctx, group, body)
	case "unpark":
		n, err := b.shares.Unpark(ctx, group)
		return map[string]int{"keys": n}, err
	}
	return nil, noAction(path)
}

// cutLast cuts at the last slash, since group names may hold some.
func cutLast(path string) (before, after string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

func noAction(path string) error {
	return &model.Error{Class: model.ClassNotFound, Object: path, Detail: "no such action; there are share-groups/{group}/redrive and share-groups/{group}/unpark"}
}

// redrive makes records of one partition ready again.
func (b *Broker) redrive(ctx context.Context, group string, body []byte) (any, error) {
	var in struct {
		Topic     string         `json:"topic"`
		Partition int32          `json:"partition"`
		Offsets   []model.Offset `json:"offsets"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, model.Err(model.ClassInvalid, fmt.Sprintf("the body is not {topic, partition, offsets}: %v", err))
	}
	t, ok := b.topics.ByName(in.Topic)
	if !ok {
		return nil, notFound("topic " + in.Topic)
	}
	n, err := b.shares.Redrive(ctx, group, t, in.Partition, in.Offsets)
	return map[string]int64{"reopened": n}, err
}
