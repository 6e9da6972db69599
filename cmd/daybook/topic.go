package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/configs"
	"github.com/daybook-mq/daybook/internal/cli/topic"
)

func newTopic(g *cli.Globals) *cobra.Command {
	return parent(&cobra.Command{
		Use:     "topic",
		Short:   "List, create, describe, change and delete topics",
		Aliases: []string{"topics"},
		Example: "  daybook topic list\n  daybook topic create orders --partitions 6\n  daybook topic describe orders",
	},
		topicList(g), topicCreate(g), topicDescribe(g), topicDelete(g), topicAlter(g),
		topicAddPartitions(g), topicConfigs(g), topicTrim(g), topicSizes(g))
}

func topicList(g *cli.Globals) *cobra.Command {
	var internal bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List topics",
		Aliases: []string{"ls"},
		Example: "  daybook topic list\n  daybook topic list --internal -o json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return topic.List(cmd.Context(), g, internal)
		},
	}
	c.Flags().BoolVar(&internal, "internal", false, "show the broker's own topics too")
	return c
}

func topicCreate(g *cli.Globals) *cobra.Command {
	o := topic.CreateOptions{}
	c := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Example: `  daybook topic create orders --partitions 6
  daybook topic create latest-price --config cleanup.policy=compact
  daybook topic create a b c --if-not-exists`,
		Args: takes("TOPIC..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Create(cmd.Context(), g, args, o)
		},
	}
	f := c.Flags()
	f.Int32VarP(&o.Partitions, "partitions", "p", -1, "number of partitions; -1 is the broker's default")
	f.Int16Var(&o.ReplicationFactor, "replication-factor", -1, "number of replicas; -1 is the broker's default")
	f.StringArrayVarP(&o.Configs, "config", "c", nil, "a setting, key=value (repeat for more)")
	f.BoolVar(&o.IfNotExists, "if-not-exists", false, "succeed when the topic exists already")
	f.BoolVar(&o.DryRun, "dry-run", false, "let the broker check the request without creating")
	return c
}

func topicDescribe(g *cli.Globals) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:               "describe TOPIC...",
		Short:             "Show partitions, offsets and settings of topics",
		Example:           "  daybook topic describe orders\n  daybook topic describe orders --all-configs -o json",
		Args:              takes("TOPIC..."),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Describe(cmd.Context(), g, args, all)
		},
	}
	c.Flags().BoolVar(&all, "all-configs", false, "show settings that have their defaults too")
	return c
}

func topicDelete(g *cli.Globals) *cobra.Command {
	var ifExists, yes bool
	c := &cobra.Command{
		Use:               "delete TOPIC...",
		Short:             "Delete topics and all their records",
		Aliases:           []string{"rm"},
		Example:           "  daybook topic delete old-orders --yes",
		Args:              takes("TOPIC..."),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Delete(cmd.Context(), g, args, ifExists, yes)
		},
	}
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed when the topic does not exist")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func topicAlter(g *cli.Globals) *cobra.Command {
	o := configs.Changes{}
	c := &cobra.Command{
		Use:   "alter TOPIC...",
		Short: "Change settings of topics",
		Example: `  daybook topic alter orders --set retention.ms=86400000
  daybook topic alter orders --unset retention.ms
  daybook topic alter orders --append cleanup.policy=compact`,
		Args:              takes("TOPIC..."),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Alter(cmd.Context(), g, args, o)
		},
	}
	changeFlags(c, &o)
	return c
}

// changeFlags are those of changes to settings.
func changeFlags(c *cobra.Command, o *configs.Changes) {
	f := c.Flags()
	f.StringArrayVar(&o.Set, "set", nil, "give a setting a value, key=value (repeat for more)")
	f.StringArrayVar(&o.Unset, "unset", nil, "let a setting go back to its default")
	f.StringArrayVar(&o.Append, "append", nil, "add to a setting that is a list, key=value")
	f.StringArrayVar(&o.Subtract, "subtract", nil, "take from a setting that is a list, key=value")
	f.BoolVar(&o.DryRun, "dry-run", false, "let the broker check the change without making it")
}

func topicAddPartitions(g *cli.Globals) *cobra.Command {
	var to, add int
	var dryRun, yes bool
	c := &cobra.Command{
		Use:   "add-partitions TOPIC",
		Short: "Add partitions to a topic",
		Long: `Add partitions to a topic. The default partitioner puts a key into
murmur2(key) mod partitions, so most keys move when the count changes, and the
order of one key's records breaks across the change. The command samples the
newest records, says how many keys move, and refuses a keyed topic without --yes.`,
		Example:           "  daybook topic add-partitions orders --to 12 --dry-run\n  daybook topic add-partitions orders --add 6 --yes",
		Args:              takes("TOPIC"),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.AddPartitions(cmd.Context(), g, args[0], to, add, dryRun, yes)
		},
	}
	c.Flags().IntVar(&to, "to", 0, "the new number of partitions")
	c.Flags().IntVar(&add, "add", 0, "how many partitions to add")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would happen only")
	c.Flags().BoolVar(&yes, "yes", false, "do it although the topic's records have keys")
	return c
}

func topicConfigs(g *cli.Globals) *cobra.Command {
	var docs bool
	c := &cobra.Command{
		Use:               "configs TOPIC [WORD]",
		Short:             "Show all settings of a topic, with where each value comes from",
		Example:           "  daybook topic configs orders\n  daybook topic configs orders retention --docs",
		Args:              takes("TOPIC", "[WORD]"),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Configs(cmd.Context(), g, args[0], append(args, "")[1], docs)
		},
	}
	c.Flags().BoolVar(&docs, "docs", false, "show what each setting means")
	return c
}

func topicTrim(g *cli.Globals) *cobra.Command {
	o := topic.TrimOptions{}
	c := &cobra.Command{
		Use:     "trim TOPIC --before POSITION",
		Short:   "Drop the records before a position",
		Aliases: []string{"delete-records"},
		Example: `  daybook topic trim orders --before -7d --dry-run
  daybook topic trim orders --before 2026-01-31 --yes
  daybook topic trim orders --before 1000 --partition 3 --yes
  daybook topic trim orders --before end --yes`,
		Args:              takes("TOPIC"),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Trim(cmd.Context(), g, args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Before, "before", "", "drop what is before this: an offset, a time, an age (-7d), or end")
	f.Int32SliceVar(&o.Partitions, "partition", nil, "only these partitions")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be dropped only")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	return c
}

func topicSizes(g *cli.Globals) *cobra.Command {
	var byPartition bool
	c := &cobra.Command{
		Use:               "sizes [TOPIC...]",
		Short:             "Show what topics take on disk",
		Example:           "  daybook topic sizes\n  daybook topic sizes orders\n  daybook topic sizes --by-partition -o json",
		Args:              takes("[TOPIC...]"),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			return topic.Sizes(cmd.Context(), g, args, byPartition)
		},
	}
	c.Flags().BoolVar(&byPartition, "by-partition", false, "one line for each partition")
	return c
}
