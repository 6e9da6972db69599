package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/txn"
)

func newTxn(g *cli.Globals) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "txn",
		Short:   "List and describe transactions, end those that hang",
		Aliases: []string{"transactions"},
		Example: "  daybook txn list\n  daybook txn describe payments-1\n  daybook txn abort-hanging --topic orders",
	}, txnList(g), txnDescribe(g), txnOpen(g), txnAbort(g))
}

func txnList(g *cli.Globals) *cobra.Command {
	var states []string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List transactional ids and their states",
		Aliases: []string{"ls"},
		Example: "  daybook txn list\n  daybook txn list --state ongoing -o json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return txn.List(cmd.Context(), g, states)
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "only these: ongoing, empty, completecommit, completeabort, ...")
	fixed(c, "state", "ongoing", "empty", "preparecommit", "prepareabort", "completecommit", "completeabort")
	return c
}

func txnDescribe(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:     "describe ID...",
		Short:   "Show the producer, state and partitions of transactional ids",
		Example: "  daybook txn describe payments-1 -o json",
		Args:    takes("ID..."),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return without(g.TransactionalIDs(cmd.Context()), args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return txn.Describe(cmd.Context(), g, args)
		},
	}
}

func txnOpen(g *cli.Globals) *cobra.Command {
	o := txn.HangingOptions{All: true}
	c := &cobra.Command{
		Use:     "open",
		Short:   "Show the transactions that partitions hold open",
		Long:    "Show the transactions that partitions hold open, hanging or not. Readers of\ncommitted records cannot pass the first offset of one.",
		Example: "  daybook txn open\n  daybook txn open --topic orders",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return txn.Hanging(cmd.Context(), g, o)
		},
	}
	hangingFlags(g, c, &o)
	return c
}

func txnAbort(g *cli.Globals) *cobra.Command {
	o := txn.HangingOptions{Abort: true}
	c := &cobra.Command{
		Use:   "abort-hanging",
		Short: "End transactions that no coordinator will end",
		Long: `End transactions that hang: a partition holds one open, no coordinator has one
open for that producer, and it has been idle for --after. Each gets an abort
marker, so that its records are never seen and readers of committed records can
pass. One that a coordinator still knows is not touched: it ends by its timeout.`,
		Example: "  daybook txn abort-hanging --topic orders\n  daybook txn abort-hanging --after 1h --yes",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return txn.Hanging(cmd.Context(), g, o)
		},
	}
	hangingFlags(g, c, &o)
	c.Flags().BoolVar(&o.Yes, "yes", false, "do not ask")
	return c
}

func hangingFlags(g *cli.Globals, c *cobra.Command, o *txn.HangingOptions) {
	c.Flags().StringArrayVar(&o.Topics, "topic", nil, "only these topics (repeat for more)")
	c.Flags().DurationVar(&o.After, "after", 15*time.Minute, "idle for so long counts as hanging")
	must(c.RegisterFlagCompletionFunc("topic", completeTopics(g)))
}
