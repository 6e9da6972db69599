package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
)

// commands are the subcommands of the root, in the order that help shows.
var commands = []func(*cli.Globals) *cobra.Command{
	newServe,
	newTopic,
	newProduce,
	newConsume,
	newGroup,
	newTxn,
	newBench,
	newDoctor,
	newLog,
	newVersion,
}

func newRoot(g *cli.Globals) *cobra.Command {
	root := parent(&cobra.Command{
		Use:   "daybook",
		Short: "One durable journal, and every messaging contract on top of it",
		Long: `Daybook is a message broker in one binary: one durable journal, and every
messaging contract on top of it.

Start one with "daybook serve". The other commands speak the public Kafka
protocol, so they also work against any other Kafka broker.`,
		Example: `  daybook serve
  daybook topic create orders --partitions 6
  echo 'k1:hello' | daybook produce orders -K :
  daybook consume orders --from start`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return g.Validate()
		},
	})
	root.SetOut(g.Out)
	root.SetErr(g.Err)
	root.SetIn(g.In)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return cli.Usagef("%v", err)
	})
	globalFlags(root, g)
	for _, c := range commands {
		root.AddCommand(c(g))
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		parent(c) // so that a shell it does not know is a usage error
	}
	return root
}

func globalFlags(root *cobra.Command, g *cli.Globals) {
	f := root.PersistentFlags()
	f.StringVar(&g.Bootstrap, "bootstrap", g.Bootstrap, "brokers to start from, host:port,... (env DAYBOOK_BOOTSTRAP)")
	f.StringVarP(&g.Output, "output", "o", g.Output, "how to print results: table or json (env DAYBOOK_OUTPUT)")
	f.DurationVar(&g.Timeout, "timeout", g.Timeout, "limit for one request to the broker, retries included")
	f.BoolVar(&g.Security.TLS, "tls", false, "connect with TLS")
	f.StringVar(&g.Security.TLSCA, "tls-ca", "", "PEM file of the authorities to trust (implies --tls)")
	f.StringVar(&g.Security.TLSCert, "tls-cert", "", "PEM file of the client's own certificate (implies --tls)")
	f.StringVar(&g.Security.TLSKey, "tls-key", "", "PEM file of the certificate's key")
	f.BoolVar(&g.Security.TLSInsecure, "tls-insecure", false, "do not check the broker's certificate (implies --tls)")
	f.StringVar(&g.Security.Mechanism, "sasl-mechanism", g.Security.Mechanism, "plain, scram-sha-256 or scram-sha-512 (env DAYBOOK_SASL_MECHANISM)")
	f.StringVar(&g.Security.User, "sasl-user", g.Security.User, "user to log in as; the password is read from env DAYBOOK_SASL_PASSWORD")
	must(root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	must(root.RegisterFlagCompletionFunc("sasl-mechanism", cobra.FixedCompletions([]string{"plain", "scram-sha-256", "scram-sha-512"}, cobra.ShellCompDirectiveNoFileComp)))
}

// parent makes a command that only holds subcommands: alone it prints its help,
// and a word it does not know is a usage error that offers the nearest ones.
func parent(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return cli.Usagef("%s", text)
	}
	c.AddCommand(children...)
	return c
}

// takes checks that exactly the named arguments are given; a last name that
// ends in "..." stands for one or more, and a name in brackets is optional.
func takes(names ...string) cobra.PositionalArgs {
	least, most := 0, len(names)
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			least++
		}
		if strings.HasSuffix(strings.Trim(n, "[]"), "...") {
			most = int(^uint(0) >> 1)
		}
	}
	return func(_ *cobra.Command, args []string) error {
		for _, a := range args {
			if a == "" {
				return cli.Usagef("an argument is empty; this command takes %s", strings.Join(names, " "))
			}
		}
		switch {
		case len(args) < least:
			return cli.Usagef("%s is missing", names[len(args)])
		case len(args) > most && most == 0:
			return cli.Usagef("unexpected argument %q: this command takes none", args[0])
		case len(args) > most:
			return cli.Usagef("unexpected argument %q: this command takes %s", args[most], strings.Join(names, " "))
		}
		return nil
	}
}

// must is for mistakes in this package that the first test run shows.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
