package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/produce"
)

func newProduce(g *cli.Globals) *cobra.Command {
	o := produce.Options{}
	var key, value, null string
	c := &cobra.Command{
		Use:   "produce TOPIC [FILE...]",
		Short: "Send records from lines, files or JSON",
		Long: `Send records to a topic: each line of the input, or of the files named, is one
record. The command waits for every acknowledgement, says how many there were,
and exits with 1 when one is missing.

Formats (--format):
  lines   each line is a value, or key and value with --key-delimiter
  json    each line is an object: {"key": "k", "value": "v", "headers": {"a": "b"},
          "partition": 0, "timestamp": 1700000000000}; what "consume -o json"
          prints is read back as it was
  hex     as lines, each in hexadecimal
  base64  as lines, each in base64
  file    each file is one record`,
		Example: `  echo hello | daybook produce greetings --create
  daybook produce orders -K : < orders.txt
  daybook produce orders --key customer-7 --header source=import --value '{"total": 12}'
  daybook produce orders --format json records.jsonl more.jsonl
  daybook produce latest --key gone --value NULL --null NULL
  daybook produce orders --value x --count 1000 --rate 50`,
		Args: takes("TOPIC", "[FILE...]"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return completeTopics(g)(cmd, args, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Topic, o.Input.Files = args[0], args[1:]
			o.Input.Key = given(cmd, "key", key)
			o.Input.Value = given(cmd, "value", value)
			o.Input.Null = given(cmd, "null", null)
			return produce.Run(cmd.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&key, "key", "k", "", "the key of every record")
	f.StringVarP(&o.Input.KeyDelimiter, "key-delimiter", "K", "", `what parts key and value in each line, e.g. : or '\t'`)
	f.StringVar(&value, "value", "", "send this value instead of reading")
	f.StringVar(&null, "null", "", "send a key or value that is exactly this as null (a tombstone)")
	f.StringArrayVarP(&o.Input.Headers, "header", "H", nil, "a header for every record, name=value (repeat for more)")
	f.StringVar(&o.Input.Format, "format", "lines", "how records are written: lines, json, hex, base64 or file")
	f.StringVarP(&o.Input.Delimiter, "delimiter", "D", `\n`, `what parts records, e.g. '\0'`)
	f.Int64VarP(&o.Input.Count, "count", "n", 0, "stop after so many records; with --value, send it so many times")
	f.Int32VarP(&o.Partition, "partition", "p", -1, "send all to this partition; -1 chooses by key as every Kafka client does")
	f.Float64Var(&o.Rate, "rate", 0, "records a second; 0 is as fast as it goes")
	f.StringVar(&o.Acks, "acks", "all", "what to wait for: all, 1, or 0 (nothing)")
	f.StringVarP(&o.Compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.DurationVar(&o.Delivery, "delivery-timeout", time.Minute, "give up when nothing was acknowledged for so long")
	f.BoolVar(&o.Create, "create", false, "create the topic when there is none")
	fixed(c, "format", "lines", "json", "hex", "base64", "file")
	fixed(c, "acks", "all", "1", "0")
	fixed(c, "compression", "none", "gzip", "snappy", "lz4", "zstd")
	return c
}

// given is the value of a flag that was set, else nil: "" may be meant.
func given(cmd *cobra.Command, flag, value string) *string {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// fixed completes a flag from a list.
func fixed(c *cobra.Command, flag string, values ...string) {
	must(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}
