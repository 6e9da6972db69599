package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/consume"
	"github.com/daybook-mq/daybook/internal/cli/record"
)

func newConsume(g *cli.Globals) *cobra.Command {
	o := consume.Options{}
	c := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Print the records of topics",
		Long: `Print the records of topics: from the start to the end that the topic has when
the command starts, or with --follow what comes from now on.

With --group the command is a member of that group: it reads from the group's
committed offsets and commits what it has printed, never more. Stopped and
started again it goes on after the last record that it printed; a record may be
printed twice when it was killed before the commit.

With --share it is a member of a share group: the broker hands each record to one
member, several share a partition, and what is printed is accepted.

Positions (--from, --to): start, end, an offset (42), the last N records (-42),
a time (2026-01-31, 2026-01-31T08:00:00Z, @1769846400), or a time ago (-1h, -7d).

Formats (--format): text (the value and a newline), json (an object on each
line), raw (values as they are), hex, base64, or a pattern:
` + record.PatternHelp,
		Example: `  daybook consume orders
  daybook consume orders --from -1h --format '%D %p/%o %k: %v\n'
  daybook consume orders payments -f
  daybook consume orders --group billing -f -o json
  daybook consume orders --partition 2 --from 1000 -n 10
  daybook consume orders -o json | daybook produce orders-copy --format json`,
		Args:              takes("TOPIC..."),
		ValidArgsFunction: completeTopics(g),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Topics = args
			return consume.Run(cmd.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.From, "from", "", "where to begin (default start; with --follow end; a group goes on after its commits)")
	f.StringVar(&o.To, "to", "", "where to stop (default the end at the start of the command; with --follow never)")
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on with records as they come")
	f.Int64VarP(&o.Count, "count", "n", 0, "stop after so many records")
	f.StringVarP(&o.Group, "group", "g", "", "read as a member of this group, and commit")
	f.StringVar(&o.Share, "share", "", "read as a member of this share group (KIP-932), and accept what is printed")
	f.StringVar(&o.Protocol, "group-protocol", "classic", "classic, or consumer (KIP-848)")
	f.StringVar(&o.Format, "format", "", "how to print: text, json, raw, hex, base64 or a pattern (default text; json with -o json)")
	f.StringVar(&o.Null, "null", "(null)", "what stands for a null key or value in text")
	f.Int32SliceVarP(&o.Partitions, "partition", "p", nil, "only these partitions")
	f.StringVar(&o.Isolation, "isolation", "committed", "committed, or uncommitted to see records of open and aborted transactions")
	must(c.RegisterFlagCompletionFunc("group", completeGroups(g)))
	must(c.RegisterFlagCompletionFunc("share", completeGroups(g)))
	fixed(c, "group-protocol", "classic", "consumer")
	fixed(c, "format", "text", "json", "raw", "hex", "base64")
	fixed(c, "isolation", "committed", "uncommitted")
	fixed(c, "from", "start", "end", "-1h")
	return c
}
