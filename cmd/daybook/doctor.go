package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/app"
	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/doctor"
)

func newDoctor(g *cli.Globals) *cobra.Command {
	o := doctor.Options{Format: app.FormatVersion}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine, the data directory and the broker",
		Long: `Run named checks of the disk, the data directory, the process limits, the clock
and the broker's addresses. Each is ok, warn or fail, with the command that mends
it. It works beside a running broker and before the first start, and exits with 1
when a check fails.`,
		Example: "  daybook doctor\n  daybook doctor --data /var/lib/daybook -o json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return doctor.Run(cmd.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Data, "data", cli.DefaultData(), "the broker's data directory (env DAYBOOK_DATA)")
	f.StringVar(&o.HTTP, "http", cli.DefaultHTTP(), "the broker's metrics and health pages (env DAYBOOK_HTTP_ADDR)")
	return c
}
