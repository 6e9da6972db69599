package group

import (
	"context"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/configs"
)

// Configs prints the settings of a group (KIP-848, KIP-932), or those whose key
// holds a word. A group has them before it exists.
func Configs(ctx context.Context, g *cli.Globals, group, word string, documentation bool) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	return configs.Show(ctx, g, conn, configs.Group, group, word, documentation)
}

// Alter changes settings of groups.
func Alter(ctx context.Context, g *cli.Globals, groups []string, changes configs.Changes) error {
	return configs.Alter(ctx, g, configs.Group, groups, changes)
}
