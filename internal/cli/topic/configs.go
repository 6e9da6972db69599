package topic

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Config is one setting of a topic as it stands.
type Config struct {
	Key           string `json:"key"`
	Value         string `json:"value"`
	Source        string `json:"source"` // topic, broker, default...
	Default       bool   `json:"default"`
	ReadOnly      bool   `json:"read_only"`
	Sensitive     bool   `json:"sensitive"`
	Documentation string `json:"documentation,omitempty"`
}

// sources name where a value comes from (DescribeConfigs, KIP-226).
var sources = map[kmsg.ConfigSource]string{
	kmsg.ConfigSourceDynamicTopicConfig:         "topic",
	kmsg.ConfigSourceDynamicBrokerConfig:        "broker, changed at run time",
	kmsg.ConfigSourceDynamicDefaultBrokerConfig: "cluster, changed at run time",
	kmsg.ConfigSourceStaticBrokerConfig:         "broker",
	kmsg.ConfigSourceDefaultConfig:              "default",
}

// effectiveConfigs asks for every setting of the topics, by topic.
func effectiveConfigs(ctx context.Context, conn *cli.Conn, documentation bool, topics ...string) (map[string][]Config, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeDocumentation = documentation
	for _, t := range topics {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, t
		req.Resources = append(req.Resources, r)
	}
	out := make(map[string][]Config, len(topics))
	for _, shard := range conn.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, cli.Failed("ask for configs", shard.Err)
		}
		for _, r := range shard.Resp.(*kmsg.DescribeConfigsResponse).Resources {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return nil, cli.Refused("ask for the configs of "+r.ResourceName, err, deref(r.ErrorMessage))
			}
			for _, c := range r.Configs {
				source, ok := sources[c.Source]
				if !ok {
					source = strings.ToLower(c.Source.String())
				}
				out[r.ResourceName] = append(out[r.ResourceName], Config{
					Key: c.Name, Value: deref(c.Value), Source: source,
					Default:  c.Source == kmsg.ConfigSourceDefaultConfig,
					ReadOnly: c.ReadOnly, Sensitive: c.IsSensitive, Documentation: deref(c.Documentation),
				})
			}
		}
	}
	return out, nil
}

// Configs prints every setting of a topic, or those whose key holds a word.
func Configs(ctx context.Context, g *cli.Globals, topic, word string, documentation bool) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	if _, err := conn.Topics(ctx, topic); err != nil {
		return err
	}
	all, err := effectiveConfigs(ctx, conn, documentation, topic)
	if err != nil {
		return err
	}
	out := []Config{}
	for _, c := range all[topic] {
		if strings.Contains(c.Key, word) {
			out = append(out, c)
		}
	}
	return g.Print(out, func(w io.Writer) error {
		if documentation {
			for _, c := range out {
				fmt.Fprintf(w, "%s = %s  (%s)\n    %s\n", c.Key, shown(c), c.Source, c.Documentation)
			}
			return nil
		}
		return writeConfigs(w, out)
	})
}

func writeConfigs(w io.Writer, configs []Config) error {
	table := cli.NewTable("CONFIG", "VALUE", "SOURCE")
	for _, c := range configs {
		table.Row(c.Key, shown(c), c.Source)
	}
	_, err := table.WriteTo(w)
	return err
}

func shown(c Config) string {
	switch {
	case c.Sensitive:
		return "(hidden)"
	case c.Value == "":
		return `""`
	}
	return c.Value
}

// AlterOptions are the changes to a topic's settings.
type AlterOptions struct {
	Set      []string // key=value
	Unset    []string // keys that go back to their defaults
	Append   []string // key=value, for settings that are lists
	Subtract []string
	DryRun   bool
}

// Alter changes settings of topics, leaving those that are not named alone.
func Alter(ctx context.Context, g *cli.Globals, topics []string, o AlterOptions) error {
	changes, err := o.changes()
	if err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	alter := conn.Admin.AlterTopicConfigs
	if o.DryRun {
		alter = conn.Admin.ValidateAlterTopicConfigs
	}
	answers, err := alter(ctx, changes, topics...)
	if err != nil {
		return cli.Failed("alter topics", err)
	}
	var failures []error
	done := []string{}
	byName := map[string]kadm.AlterConfigsResponse{}
	for _, a := range answers {
		byName[a.Name] = a
	}
	for _, name := range topics {
		if a := byName[name]; a.Err != nil {
			failures = append(failures, cli.Refused("alter topic "+name, a.Err, a.ErrMessage))
			continue
		}
		done = append(done, name)
	}
	type altered struct {
		Topic  string `json:"topic"`
		DryRun bool   `json:"dry_run"`
	}
	out := []altered{}
	for _, name := range done {
		out = append(out, altered{name, o.DryRun})
	}
	err = g.Print(out, func(w io.Writer) error {
		for _, name := range done {
			if o.DryRun {
				fmt.Fprintf(w, "Topic %s would accept that.\n", name)
			} else {
				fmt.Fprintf(w, "Altered topic %s.\n", name)
			}
		}
		return nil
	})
	return g.Finish(err, failures)
}

func (o AlterOptions) changes() ([]kadm.AlterConfig, error) {
	var changes []kadm.AlterConfig
	for _, set := range []struct {
		op    kadm.IncrementalOp
		flag  string
		pairs []string
	}{{kadm.SetConfig, "--set", o.Set}, {kadm.AppendConfig, "--append", o.Append}, {kadm.SubtractConfig, "--subtract", o.Subtract}} {
		for _, pair := range set.pairs {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return nil, cli.Usagef("%s %q is not key=value", set.flag, pair)
			}
			changes = append(changes, kadm.AlterConfig{Op: set.op, Name: key, Value: &value})
		}
	}
	for _, key := range o.Unset {
		if strings.Contains(key, "=") {
			return nil, cli.Usagef("--unset %q: name the key only", key)
		}
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
	}
	if len(changes) == 0 {
		return nil, cli.Usagef("nothing to change: give --set key=value or --unset key")
	}
	return changes, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
