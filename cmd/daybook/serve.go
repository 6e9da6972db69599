package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/app"
	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/config"
	"github.com/daybook-mq/daybook/internal/obs"
)

func newServe(g *cli.Globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Start a broker",
		Long: `Start a broker. It needs no flag and no file: data goes to ./daybook-data, Kafka
clients connect to 127.0.0.1:9092, metrics, health and debug pages are on
127.0.0.1:8080.

Every option can also be an environment variable (--sync is DAYBOOK_SYNC, --kafka
is DAYBOOK_KAFKA_ADDR) or a key of the YAML file that --config names. A flag goes
before a variable, a variable before the file.`,
		Example: `  daybook serve
  daybook serve --data /var/lib/daybook --kafka 0.0.0.0:9092 --advertise broker.example.com
  daybook serve --print-config > daybook.yaml`,
		Args: takes(),
	}
	flags := config.BindFlags(c.Flags())
	printConfig := c.Flags().Bool("print-config", false, "print the effective configuration as a config file, with each value's origin, and exit")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := config.Load(flags, os.Environ())
		if err != nil {
			return cli.Usagef("%v", err)
		}
		if *printConfig {
			return loaded.Print(g.Out)
		}
		log := obs.NewLogger(g.Err, loaded.LogLevel, loaded.LogFormat)
		for _, note := range loaded.Notes {
			log.Warn("configuration", "note", note)
		}
		return app.Serve(cmd.Context(), app.Options{Config: loaded.Config, Log: log, Version: versionName()}, g.Out)
	}
	return c
}

// versionName is short: a tag, or the commit of a development build.
func versionName() string {
	v := cli.Version()
	switch {
	case v.Version != "" && v.Version != "(devel)":
		return v.Version
	case len(v.Commit) >= 12:
		return v.Commit[:12]
	}
	return "development"
}
