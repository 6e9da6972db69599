// Package configs shows and changes settings: those of topics and of groups. It
// owns the shape of a setting in results; flags live in cmd/daybook.
package configs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Kind is what has settings.
type Kind struct {
	Type kmsg.ConfigResourceType
	Noun string // in messages
}

// The kinds that commands show and change.
var (
	Topic = Kind{kmsg.ConfigResourceTypeTopic, "topic"}
	Group = Kind{kmsg.ConfigResourceTypeGroupConfig, "group"}
)

// Config is one setting as it stands.
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
	kmsg.ConfigSourceGroupConfig:                "group",
	kmsg.ConfigSourceDynamicBrokerConfig:        "broker, changed at run time",
	kmsg.ConfigSourceDynamicDefaultBrokerConfig: "cluster, changed at run time",
	kmsg.ConfigSourceStaticBrokerConfig:         "broker",
	kmsg.ConfigSourceDefaultConfig:              "default",
}

// Effective asks for every setting of the named things, by name.
func Effective(ctx context.Context, conn *cli.Conn, kind Kind, documentation bool, names ...string) (map[string][]Config, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeDocumentation = documentation
	for _, name := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind.Type, name
		req.Resources = append(req.Resources, r)
	}
	out := make(map[string][]Config, len(names))
	for _, shard := range conn.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, cli.Failed("ask for configs", shard.Err)
		}
		for _, r := range shard.Resp.(*kmsg.DescribeConfigsResponse).Resources {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return nil, cli.Refused("ask for the configs of "+kind.Noun+" "+r.ResourceName, err, deref(r.ErrorMessage))
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

// Show prints every setting of one thing, or those whose key holds a word.
func Show(ctx context.Context, g *cli.Globals, conn *cli.Conn, kind Kind, name, word string, documentation bool) error {
	all, err := Effective(ctx, conn, kind, documentation, name)
	if err != nil {
		return err
	}
	out := []Config{}
	for _, c := range all[name] {
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
		return Write(w, out)
	})
}

// Write prints settings as a table.
func Write(w io.Writer, configs []Config) error {
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

// Changes are changes to settings; those that are not named stay.
type Changes struct {
	Set      []string // key=value
	Unset    []string // keys that go back to their defaults
	Append   []string // key=value, for settings that are lists
	Subtract []string
	DryRun   bool
}

// Altered is one thing after its settings were changed.
type Altered struct {
	Name   string `json:"name"`
	DryRun bool   `json:"dry_run"`
}

// Alter changes settings of the named things (KIP-339).
func Alter(ctx context.Context, g *cli.Globals, kind Kind, names []string, o Changes) error {
	changes, err := o.list()
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
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = o.DryRun
	for _, name := range names {
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.Configs = kind.Type, name, changes
		req.Resources = append(req.Resources, r)
	}
	out := []Altered{}
	var failures []error
	for _, shard := range conn.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return cli.Failed("alter "+kind.Noun+"s", shard.Err)
		}
		for _, r := range shard.Resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				failures = append(failures, cli.Refused("alter "+kind.Noun+" "+r.ResourceName, err, deref(r.ErrorMessage)))
				continue
			}
			out = append(out, Altered{r.ResourceName, o.DryRun})
		}
	}
	err = g.Print(out, func(w io.Writer) error {
		for _, a := range out {
			if o.DryRun {
				fmt.Fprintf(w, "The broker would alter %s %s.\n", kind.Noun, a.Name)
			} else {
				fmt.Fprintf(w, "Altered %s %s.\n", kind.Noun, a.Name)
			}
		}
		return nil
	})
	return g.Finish(err, failures)
}

func (o Changes) list() ([]kmsg.IncrementalAlterConfigsRequestResourceConfig, error) {
	var changes []kmsg.IncrementalAlterConfigsRequestResourceConfig
	add := func(op kmsg.IncrementalAlterConfigOp, key string, value *string) {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Op, c.Name, c.Value = op, key, value
		changes = append(changes, c)
	}
	for _, set := range []struct {
		op    kmsg.IncrementalAlterConfigOp
		flag  string
		pairs []string
	}{
		{kmsg.IncrementalAlterConfigOpSet, "--set", o.Set},
		{kmsg.IncrementalAlterConfigOpAppend, "--append", o.Append},
		{kmsg.IncrementalAlterConfigOpSubtract, "--subtract", o.Subtract},
	} {
		for _, pair := range set.pairs {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return nil, cli.Usagef("%s %q is not key=value", set.flag, pair)
			}
			add(set.op, key, &value)
		}
	}
	for _, key := range o.Unset {
		if strings.Contains(key, "=") {
			return nil, cli.Usagef("--unset %q: name the key only", key)
		}
		add(kmsg.IncrementalAlterConfigOpDelete, key, nil)
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
