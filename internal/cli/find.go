package cli

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Topics asks for the details of the named topics and refuses when one of them
// does not exist. No name means all topics, the internal ones too.
func (c *Conn) Topics(ctx context.Context, names ...string) (kadm.TopicDetails, error) {
	details, err := c.Admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, Failed("look topics up", err)
	}
	for _, name := range names {
		t, ok := details[name]
		if !ok {
			return nil, NoTopic(name, kerr.UnknownTopicOrPartition)
		}
		if t.Err != nil {
			return nil, NoTopic(name, t.Err)
		}
	}
	return details, nil
}

// NoTopic explains a broker's refusal of a topic by name.
func NoTopic(name string, err error) error {
	text := ""
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		text = "there is no such topic"
	}
	return Refused("topic "+name, err, text)
}
