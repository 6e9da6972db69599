package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
)

// completeTopics offers the topics of the broker that the line names.
func completeTopics(g *cli.Globals) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return without(g.TopicNames(cmd.Context()), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeGroups offers the groups of the broker that the line names.
func completeGroups(g *cli.Globals) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return without(g.GroupNames(cmd.Context()), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// without leaves out the names that the line has already.
func without(names, given []string) []string {
	have := map[string]bool{}
	for _, g := range given {
		have[g] = true
	}
	var out []string
	for _, n := range names {
		if !have[n] {
			out = append(out, n)
		}
	}
	return out
}
