package cli

import (
	"context"
	"time"
)

// completionTimeout keeps a shell from hanging on a broker that is not there.
const completionTimeout = 2 * time.Second

// TopicNames are the topics for shell completion; none when no broker answers.
func (g *Globals) TopicNames(ctx context.Context) []string {
	return g.names(ctx, func(ctx context.Context, conn *Conn) ([]string, error) {
		topics, err := conn.Admin.ListTopics(ctx)
		return topics.Names(), err
	})
}

// GroupNames are the groups for shell completion; none when no broker answers.
func (g *Globals) GroupNames(ctx context.Context) []string {
	return g.names(ctx, func(ctx context.Context, conn *Conn) ([]string, error) {
		groups, err := conn.Admin.ListGroups(ctx)
		return groups.Groups(), err
	})
}

func (g *Globals) names(ctx context.Context, list func(context.Context, *Conn) ([]string, error)) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	if g.Security.validate() != nil {
		return nil
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	names, err := list(ctx, conn)
	if err != nil {
		return nil
	}
	return names
}

// TransactionalIDs are those for shell completion; none when no broker answers.
func (g *Globals) TransactionalIDs(ctx context.Context) []string {
	return g.names(ctx, func(ctx context.Context, conn *Conn) ([]string, error) {
		listed, err := conn.Admin.ListTransactions(ctx, nil, nil)
		return listed.TransactionalIDs(), err
	})
}
