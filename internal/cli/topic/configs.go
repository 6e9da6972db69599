package topic

import (
	"context"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/configs"
)

// Configs prints every setting of a topic, or those whose key holds a word.
func Configs(ctx context.Context, g *cli.Globals, topic, word string, documentation bool) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	if _, err := conn.Topics(ctx, topic); err != nil {
		return err
	}
	return configs.Show(ctx, g, conn, configs.Topic, topic, word, documentation)
}

// Alter changes settings of topics, leaving those that are not named alone.
func Alter(ctx context.Context, g *cli.Globals, topics []string, changes configs.Changes) error {
	return configs.Alter(ctx, g, configs.Topic, topics, changes)
}
