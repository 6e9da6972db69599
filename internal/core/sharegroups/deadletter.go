package sharegroups

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/daybook-mq/daybook/internal/core/ledgers"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// The headers of a dead letter, as Kafka writes them (KIP-1191). Values are text.
const (
	headerTopic     = "__dlq.errors.topic"
	headerPartition = "__dlq.errors.partition"
	headerOffset    = "__dlq.errors.offset"
	headerGroup     = "__dlq.errors.group"
	headerCount     = "__dlq.errors.delivery.count"
	headerMessage   = "__dlq.errors.message"
)

// deadLetterRoom is what a batch of dead letters leaves free of max.message.bytes
// for its header and rounding.
const deadLetterRoom = 1024

// deadLetter makes the hook that a ledger of the group calls for dead records.
func (c *Coordinator) deadLetter(groupID string, source model.TopicID) func(context.Context, ledgers.Dead) ([]partition.Append, error) {
	return func(ctx context.Context, d ledgers.Dead) ([]partition.Append, error) {
		name := c.o.Topics.GroupSetting(groupID, "errors.deadletterqueue.topic.name")
		from, ok := c.o.Topics.ByID(source)
		if name == "" || !ok {
			return nil, nil
		}
		to, err := c.deadLetterTopic(ctx, name)
		if err != nil {
			return nil, err
		}
		l := letters{
			c: c, to: to, part: to.Partitions[int(d.From.ID().Index)%len(to.Partitions)],
			copy: c.o.Topics.GroupSetting(groupID, "errors.deadletterqueue.copy.record.enable") == "true",
			headers: []records.Header{
				{Key: headerTopic, Value: []byte(from.Name)},
				{Key: headerPartition, Value: strconv.AppendInt(nil, int64(d.From.ID().Index), 10)},
				{Key: headerGroup, Value: []byte(groupID)},
				{Key: headerCount, Value: strconv.AppendInt(nil, int64(d.Count), 10)},
				{Key: headerMessage, Value: []byte(deathMessage(d.Reason))},
			},
		}
		return l.write(d)
	}
}

func deathMessage(reason string) string {
	if reason == "rejected" {
		return "Offset rejected by client."
	}
	return "Offset delivery count exceeded the threshold."
}

// deadLetterTopic finds, or makes where that is allowed, the topic of dead letters.
func (c *Coordinator) deadLetterTopic(ctx context.Context, name string) (*topics.Topic, error) {
	prefix := c.o.Topics.Setting("errors.deadletterqueue.topic.name.prefix")
	if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, "__") {
		return nil, model.Err(model.ClassPolicy, fmt.Sprintf("dead-letter topic %q must begin with %q and not with __ (errors.deadletterqueue.topic.name.prefix)", name, prefix))
	}
	t, ok := c.o.Topics.ByName(name)
	if !ok {
		if c.o.Topics.Setting("errors.deadletterqueue.auto.create.topics.enable") != "true" {
			return nil, model.Err(model.ClassNotFound, fmt.Sprintf("dead-letter topic %q does not exist; create it with errors.deadletterqueue.group.enable=true, or set errors.deadletterqueue.auto.create.topics.enable=true", name))
		}
		spec := topics.Spec{Name: name, Partitions: -1, Configs: map[string]string{"errors.deadletterqueue.group.enable": "true"}}
		return c.o.Topics.Create(ctx, spec, false)
	}
	if t.Overrides["errors.deadletterqueue.group.enable"] != "true" {
		return nil, model.Err(model.ClassPolicy, fmt.Sprintf("topic %q does not take dead letters; set errors.deadletterqueue.group.enable=true on it", name))
	}
	return t, nil
}

// letters builds the batches of dead letters for one span.
type letters struct {
	c       *Coordinator
	to      *topics.Topic
	part    *partition.Partition
	copy    bool
	headers []records.Header
	items   []partition.Append
	b       *records.Builder
}

func (l *letters) write(d ledgers.Dead) ([]partition.Append, error) {
	err := ledgers.EachRecord(d.Data, func(o model.Offset, r records.Record) error {
		if o < d.Span.First || o > d.Span.Last {
			return nil
		}
		return l.add(o, r)
	})
	if err != nil {
		return nil, err
	}
	err = l.flush()
	return l.items, err
}

func (l *letters) add(o model.Offset, r records.Record) error {
	headers := append([]records.Header{{Key: headerOffset, Value: strconv.AppendInt(nil, int64(o), 10)}}, l.headers...)
	var key, value []byte
	size := 256
	if l.copy {
		own, err := r.Headers()
		if err != nil {
			return err
		}
		key, value = r.Key, r.Value
		headers = append(own, headers...)
		size += len(key) + len(value) + len(r.RawHeaders)
	}
	if l.b != nil && l.b.Size()+size > l.to.Config.MaxMessageBytes-deadLetterRoom {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.b == nil {
		l.b = records.NewBuilder(records.Plain(l.c.o.Now()))
	}
	l.b.Add(0, key, value, headers)
	return nil
}

func (l *letters) flush() error {
	if l.b == nil {
		return nil
	}
	batch, err := l.b.Build(0)
	l.b = nil
	l.items = append(l.items, partition.Append{To: l.part, Batch: batch, Origin: partition.FromCoordinator})
	return err
}
