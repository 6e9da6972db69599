// Package topic is what `daybook topic` does: listing, creating, describing,
// changing and deleting topics through Kafka's administrative requests. It owns
// the shapes of their results (the JSON of -o json); flags live in cmd/daybook.
package topic

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Summary is one topic in a listing.
type Summary struct {
	Name              string `json:"name"`
	ID                string `json:"id"`
	Partitions        int    `json:"partitions"`
	ReplicationFactor int    `json:"replication_factor"`
	Internal          bool   `json:"internal"`
}

// List prints the topics there are; the internal ones only when asked.
func List(ctx context.Context, g *cli.Globals, internal bool) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	list := conn.Admin.ListTopics
	if internal {
		list = conn.Admin.ListTopicsWithInternal
	}
	topics, err := list(ctx)
	if err != nil {
		return cli.Failed("list topics", err)
	}
	out := make([]Summary, 0, len(topics))
	for _, t := range topics.Sorted() {
		out = append(out, Summary{
			Name: t.Topic, ID: idText(t.ID), Partitions: len(t.Partitions),
			ReplicationFactor: t.Partitions.NumReplicas(), Internal: t.IsInternal,
		})
	}
	return g.Print(out, func(w io.Writer) error {
		if len(out) == 0 {
			g.Note("There are no topics yet. `daybook topic create NAME` makes one.")
			return nil
		}
		table := cli.NewTable("TOPIC", ">PARTITIONS", ">REPLICAS")
		for _, t := range out {
			table.Row(t.Name, t.Partitions, t.ReplicationFactor)
		}
		_, err := table.WriteTo(w)
		return err
	})
}

// idText is a topic id as Kafka's own tools print it.
func idText(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// CreateOptions say what new topics are like.
type CreateOptions struct {
	Partitions        int32 // -1: the broker's default
	ReplicationFactor int16 // -1: the broker's default
	Configs           []string
	IfNotExists       bool
	DryRun            bool
}

// Created is one topic after `topic create`.
type Created struct {
	Name              string `json:"name"`
	ID                string `json:"id"`
	Partitions        int32  `json:"partitions"`
	ReplicationFactor int16  `json:"replication_factor"`
	Existed           bool   `json:"existed"`
	DryRun            bool   `json:"dry_run"`
}

// Create makes topics. When one of several is refused, the others are made
// all the same and the command fails at the end.
func Create(ctx context.Context, g *cli.Globals, names []string, o CreateOptions) error {
	configs, err := parseConfigs(o.Configs)
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
	create := conn.Admin.CreateTopics
	if o.DryRun {
		create = conn.Admin.ValidateCreateTopics
	}
	answers, err := create(ctx, o.Partitions, o.ReplicationFactor, configs, names...)
	if err != nil {
		return cli.Failed("create topics", err)
	}
	var out []Created
	var failures []error
	for _, name := range names {
		a := answers[name]
		existed := a.Err == kerr.TopicAlreadyExists && o.IfNotExists
		if a.Err != nil && !existed {
			failures = append(failures, cli.Refused("create topic "+name, a.Err, a.ErrMessage))
			continue
		}
		out = append(out, Created{name, idText(a.ID), a.NumPartitions, a.ReplicationFactor, existed, o.DryRun})
	}
	err = g.Print(out, func(w io.Writer) error {
		for _, c := range out {
			switch {
			case c.Existed:
				fmt.Fprintf(w, "Topic %s exists already.\n", c.Name)
			case c.DryRun:
				fmt.Fprintf(w, "Would create topic %s.\n", c.Name)
			default:
				fmt.Fprintf(w, "Created topic %s with %s.\n", c.Name, cli.Plural(int64(c.Partitions), "partition"))
			}
		}
		return nil
	})
	return g.Finish(err, failures)
}

// parseConfigs reads key=value pairs.
func parseConfigs(pairs []string) (map[string]*string, error) {
	configs := make(map[string]*string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, cli.Usagef("%q is not key=value, as in --config retention.ms=86400000", pair)
		}
		configs[key] = &value
	}
	return configs, nil
}

// Delete deletes topics and all their records.
func Delete(ctx context.Context, g *cli.Globals, names []string, ifExists, yes bool) error {
	what := "topic " + names[0]
	if len(names) > 1 {
		what = "topics " + strings.Join(names, ", ")
	}
	if err := g.Confirm(ctx, yes, fmt.Sprintf("This deletes %s with all records, for good.", what)); err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	answers, err := conn.Admin.DeleteTopics(ctx, names...)
	if err != nil {
		return cli.Failed("delete topics", err)
	}
	type deleted struct {
		Name    string `json:"name"`
		Deleted bool   `json:"deleted"`
	}
	out := []deleted{}
	var failures []error
	for _, name := range names {
		a := answers[name]
		missing := a.Err == kerr.UnknownTopicOrPartition && ifExists
		if a.Err != nil && !missing {
			failures = append(failures, cli.NoTopic(name, a.Err))
			continue
		}
		out = append(out, deleted{name, !missing})
	}
	err = g.Print(out, func(w io.Writer) error {
		for _, d := range out {
			if d.Deleted {
				fmt.Fprintf(w, "Deleted topic %s.\n", d.Name)
			} else {
				fmt.Fprintf(w, "Topic %s does not exist.\n", d.Name)
			}
		}
		return nil
	})
	return g.Finish(err, failures)
}

func sortedKeys[M ~map[K]V, K int32 | string, V any](m M) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
