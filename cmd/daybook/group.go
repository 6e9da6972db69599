package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/configs"
	"github.com/daybook-mq/daybook/internal/cli/group"
)

func newGroup(g *cli.Globals) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "group",
		Short:   "List and describe groups, show their lag, change their offsets",
		Aliases: []string{"groups"},
		Example: "  daybook group list\n  daybook group lag billing -w\n  daybook group reset billing --topic orders --by-duration 1h --execute",
	},
		groupList(g), groupDescribe(g), groupLag(g), groupLedgers(g), groupRedrive(g), groupUnpark(g), groupReset(g), groupDelete(g), groupDeleteOffsets(g),
		groupConfigs(g), groupAlter(g))
}

func groupList(g *cli.Globals) *cobra.Command {
	var types, states []string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List groups",
		Aliases: []string{"ls"},
		Example: "  daybook group list\n  daybook group list --type consumer --state stable -o json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return group.List(cmd.Context(), g, types, states)
		},
	}
	c.Flags().StringSliceVar(&types, "type", nil, "only these: classic, consumer, share")
	c.Flags().StringSliceVar(&states, "state", nil, "only these: stable, empty, dead, ...")
	fixed(c, "type", "classic", "consumer", "share")
	fixed(c, "state", "stable", "empty", "dead", "assigning", "reconciling", "preparingrebalance", "completingrebalance")
	return c
}

func groupLedgers(g *cli.Globals) *cobra.Command {
	var base string
	c := &cobra.Command{
		Use:               "ledgers GROUP",
		Short:             "Show what a share group is owed: ready, in flight, delayed, dead, and why keys wait",
		Example:           "  daybook group ledgers workers\n  daybook group ledgers workers --http http://127.0.0.1:8080 -o json",
		Args:              takes("GROUP"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Ledgers(cmd.Context(), g, base, args[0])
		},
	}
	c.Flags().StringVar(&base, "http", cli.DefaultHTTP(), "the broker's HTTP address (env DAYBOOK_HTTP_ADDR)")
	return c
}

func groupRedrive(g *cli.Globals) *cobra.Command {
	var base, from string
	var execute bool
	c := &cobra.Command{
		Use:   "redrive GROUP",
		Short: "Give a share group's dead letters another try, where they came from",
		Long: `Read a dead-letter topic and make the records that its letters of this share group
name ready again: for this group alone, in their old place, without a copy. What
retention has removed meanwhile is not reopened.`,
		Example:           "  daybook group redrive workers --from dlq.orders\n  daybook group redrive workers --from dlq.orders --execute",
		Args:              takes("GROUP"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Redrive(cmd.Context(), g, base, args[0], from, execute)
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "the dead-letter topic")
	f.BoolVar(&execute, "execute", false, "do it; without this it is only counted")
	f.StringVar(&base, "http", cli.DefaultHTTP(), "the broker's HTTP address (env DAYBOOK_HTTP_ADDR)")
	must(c.MarkFlagRequired("from"))
	must(c.RegisterFlagCompletionFunc("from", completeTopics(g)))
	return c
}

func groupUnpark(g *cli.Globals) *cobra.Command {
	var base string
	c := &cobra.Command{
		Use:               "unpark GROUP",
		Short:             "Open the keys of a share group that a dead record closed (daybook.share.park)",
		Example:           "  daybook group unpark workers",
		Args:              takes("GROUP"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Unpark(cmd.Context(), g, base, args[0])
		},
	}
	c.Flags().StringVar(&base, "http", cli.DefaultHTTP(), "the broker's HTTP address (env DAYBOOK_HTTP_ADDR)")
	return c
}

// lagFlags are the limits that states come from, and what a reader gets to.
func lagFlags(f *pflag.FlagSet, isolation *string, l *group.Limits) {
	f.StringVar(isolation, "isolation", "committed", "count up to the last stable offset (committed) or to the end (uncommitted)")
	f.Int64Var(&l.WarnMessages, "warn", 10_000, "messages behind from which a state is WARN")
	f.Int64Var(&l.PageMessages, "page", 100_000, "messages behind from which a state is PAGE")
	f.DurationVar(&l.WarnAge, "warn-age", 0, "time behind from which a state is WARN; 0 is never")
	f.DurationVar(&l.PageAge, "page-age", 0, "time behind from which a state is PAGE; 0 is never")
}

func groupDescribe(g *cli.Globals) *cobra.Command {
	var isolation string
	var limits group.Limits
	c := &cobra.Command{
		Use:               "describe GROUP...",
		Short:             "Show the state, members, assignment and lag of groups",
		Example:           "  daybook group describe billing\n  daybook group describe billing -o json",
		Args:              takes("GROUP..."),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Describe(cmd.Context(), g, args, isolation, limits)
		},
	}
	lagFlags(c.Flags(), &isolation, &limits)
	fixed(c, "isolation", "committed", "uncommitted")
	return c
}

func groupLag(g *cli.Globals) *cobra.Command {
	o := group.LagOptions{}
	c := &cobra.Command{
		Use:   "lag [GROUP...]",
		Short: "Show how far groups are behind, in messages and in time",
		Long: `Show how far groups are behind. LAG counts messages from the first one that the
group has not consumed to the end; BEHIND is that message's age, 0 when there is
none, and unknown when the group never committed there. Transaction markers and
gaps at the end are no lag.

States: OK; WARN and PAGE from the limits; STALLED (with --watch) when the lag
grows while the committed offset stands still; UNKNOWN when nothing was ever
committed; GONE when the partition exists no more.`,
		Example: `  daybook group lag
  daybook group lag billing -w --interval 5s
  daybook group lag billing --check --warn 1000 --warn-age 30s`,
		Args:              takes("[GROUP...]"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Groups = args
			return group.ShowLag(cmd.Context(), g, o)
		},
	}
	f := c.Flags()
	lagFlags(f, &o.Isolation, &o.Limits)
	f.BoolVarP(&o.Watch, "watch", "w", false, "show it again and again")
	f.DurationVar(&o.Interval, "interval", 2*time.Second, "how often with --watch")
	f.BoolVar(&o.Check, "check", false, "exit with 1 unless every state is OK")
	fixed(c, "isolation", "committed", "uncommitted")
	return c
}

func groupReset(g *cli.Globals) *cobra.Command {
	o := group.ResetOptions{}
	var offset, shift int64
	c := &cobra.Command{
		Use:   "reset GROUP (--topic TOPIC | --all-topics) TARGET",
		Short: "Move a group's committed offsets (shows the change; --execute applies it)",
		Long: `Move a group's committed offsets. Without --execute the command only shows what
it would do. It refuses while the group has members. Offsets outside of what a
partition holds are moved to its nearest end.`,
		Example: `  daybook group reset billing --all-topics --to-start
  daybook group reset billing --topic orders --by-duration 1h --execute
  daybook group reset billing --topic orders:0,2 --shift-by -100 --execute
  daybook group reset billing --all-topics --to-current --export > offsets.csv
  daybook group reset billing --from-file offsets.csv --execute`,
		Args:              takes("GROUP"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("to-offset") {
				o.ToOffset = &offset
			}
			if cmd.Flags().Changed("shift-by") {
				o.ShiftBy = &shift
			}
			return group.Reset(cmd.Context(), g, args[0], o)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.Topics, "topic", nil, "a topic, or some of its partitions: orders:0,2-4 (repeat for more)")
	f.BoolVar(&o.AllTopics, "all-topics", false, "all topics that the group has committed offsets for")
	f.BoolVar(&o.ToStart, "to-start", false, "to the first record there is")
	f.BoolVar(&o.ToEnd, "to-end", false, "to the next record to come")
	f.BoolVar(&o.ToCurrent, "to-current", false, "to where it is, within what the partition holds")
	f.Int64Var(&offset, "to-offset", 0, "to this offset")
	f.StringVar(&o.ToTime, "to-time", "", "to the first record at or after a time")
	f.StringVar(&o.ByDuration, "by-duration", "", "to the first record of the last 90m, 12h, 7d...")
	f.Int64Var(&shift, "shift-by", 0, "forward by so many offsets, or back when negative")
	f.StringVar(&o.FromFile, "from-file", "", "to what a file says, topic,partition,offset on each line")
	f.BoolVar(&o.Execute, "execute", false, "apply the change")
	f.BoolVar(&o.Execute, "yes", false, "the same as --execute")
	f.BoolVar(&o.Export, "export", false, "print the new offsets as lines for --from-file")
	must(c.RegisterFlagCompletionFunc("topic", completeTopics(g)))
	return c
}

func groupDelete(g *cli.Globals) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:               "delete GROUP...",
		Short:             "Delete groups that have no members, with their offsets",
		Aliases:           []string{"rm"},
		Example:           "  daybook group delete old-billing --yes",
		Args:              takes("GROUP..."),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Delete(cmd.Context(), g, args, yes)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func groupDeleteOffsets(g *cli.Globals) *cobra.Command {
	var topics []string
	var yes bool
	c := &cobra.Command{
		Use:               "delete-offsets GROUP --topic TOPIC",
		Short:             "Make a group forget its offsets of topics",
		Example:           "  daybook group delete-offsets billing --topic old-orders --yes\n  daybook group delete-offsets billing --topic orders:3 --yes",
		Args:              takes("GROUP"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.DeleteOffsets(cmd.Context(), g, args[0], topics, yes)
		},
	}
	c.Flags().StringArrayVar(&topics, "topic", nil, "a topic, or some of its partitions: orders:0,2-4 (repeat for more)")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	must(c.RegisterFlagCompletionFunc("topic", completeTopics(g)))
	return c
}

func groupConfigs(g *cli.Globals) *cobra.Command {
	var docs bool
	c := &cobra.Command{
		Use:               "configs GROUP [WORD]",
		Short:             "Show the settings of a group",
		Long:              "Show the settings of a group of the consumer protocol or of a share group. A group\nhas them before it exists.",
		Example:           "  daybook group configs workers share",
		Args:              takes("GROUP", "[WORD]"),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Configs(cmd.Context(), g, args[0], append(args, "")[1], docs)
		},
	}
	c.Flags().BoolVar(&docs, "docs", false, "show what each setting means")
	return c
}

func groupAlter(g *cli.Globals) *cobra.Command {
	o := configs.Changes{}
	c := &cobra.Command{
		Use:               "alter GROUP...",
		Short:             "Change settings of groups",
		Example:           "  daybook group alter workers --set share.auto.offset.reset=earliest",
		Args:              takes("GROUP..."),
		ValidArgsFunction: completeGroups(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return group.Alter(cmd.Context(), g, args, o)
		},
	}
	changeFlags(c, &o)
	return c
}
