package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
)

func newVersion(g *cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  daybook version\n  daybook version -o json",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			v := cli.Version()
			return g.Print(v, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, v)
				return err
			})
		},
	}
}
