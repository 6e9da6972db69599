package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-mq/daybook/internal/cli"
)

// offsets are where a group stands: its commits, or a share group's starts.
type offsets struct {
	group   string
	share   bool
	current kadm.Offsets // only where there is one
}

// idleOffsets reads where a group stands, and refuses one that has members: they
// would commit over a change. A group that does not exist is made by a change.
func idleOffsets(ctx context.Context, conn *cli.Conn, group string) (*offsets, error) {
	at := &offsets{group: group, current: kadm.Offsets{}}
	details, err := describe(ctx, conn, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return at, nil
	}
	if err != nil {
		return nil, err
	}
	d := details[0]
	if d.live() {
		var who []string
		for _, m := range d.Members {
			who = append(who, fmt.Sprintf("%s at %s", m.Client, m.Host))
		}
		return nil, cli.Hintf(fmt.Errorf("group %s is in use (%s; %s): its members would commit over the change", group, d.State, strings.Join(who, ", ")),
			"Stop them first; `daybook group describe %s` names them.", group)
	}
	at.share = d.Type == typeShare
	return at, at.read(ctx, conn)
}

func (at *offsets) read(ctx context.Context, conn *cli.Conn) error {
	what := "ask for the offsets of group " + at.group
	if at.share {
		all, err := conn.Admin.DescribeShareGroupOffsets(ctx, at.group)
		if err != nil {
			return cli.Failed(what, err)
		}
		for _, of := range all {
			if of.Err != nil {
				return cli.Refused(what, of.Err, "")
			}
			of.Offsets.Each(func(o kadm.ShareOffset) {
				if o.Err == nil && o.StartOffset >= 0 {
					at.current.AddOffset(o.Topic, o.Partition, o.StartOffset, -1)
				}
			})
		}
		return nil
	}
	commits, err := conn.Admin.FetchOffsets(ctx, at.group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return cli.Failed(what, err)
	}
	commits.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At >= 0 {
			at.current.Add(o.Offset)
		}
	})
	return nil
}

// apply moves the group and notes in each move that it was made.
func (at *offsets) apply(ctx context.Context, conn *cli.Conn, moves []Move) error {
	set := kadm.Offsets{}
	for _, m := range moves {
		set.AddOffset(m.Topic, m.Partition, m.New, -1)
	}
	result := map[place]error{}
	if at.share {
		answers, err := conn.Admin.AlterShareGroupOffsets(ctx, at.group, set)
		if err != nil {
			return cli.Failed("reset group "+at.group, err)
		}
		for _, m := range moves {
			result[place{m.Topic, m.Partition}], _ = answers.Lookup(m.Topic, m.Partition)
		}
	} else {
		answers, err := conn.Admin.CommitOffsets(ctx, at.group, set)
		if err != nil {
			return cli.Failed("reset group "+at.group, err)
		}
		answers.Each(func(o kadm.OffsetResponse) { result[place{o.Topic, o.Partition}] = o.Err })
	}
	for i, m := range moves {
		if err := result[place{m.Topic, m.Partition}]; err != nil {
			return cli.Refused(fmt.Sprintf("reset group %s at %s-%d", at.group, m.Topic, m.Partition), err, "")
		}
		moves[i].Applied = true
	}
	return nil
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// DeleteOffsets makes a group forget its offsets of topics. A share group
// forgets whole topics only.
func DeleteOffsets(ctx context.Context, g *cli.Globals, group string, topics []string, yes bool) error {
	if len(topics) == 0 {
		return cli.Usagef("--topic is missing: name the topics to forget, e.g. --topic orders or --topic orders:0,2")
	}
	named := map[string][]int32{}
	for _, text := range topics {
		topic, partitions, err := ParseTopic(text)
		if err != nil {
			return cli.Usagef("--topic: %v", err)
		}
		named[topic] = partitions
	}
	if err := g.Confirm(ctx, yes, fmt.Sprintf("This makes group %s forget its offsets of %s.", group, strings.Join(topics, " "))); err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	details, err := describe(ctx, conn, group)
	if err != nil {
		return err
	}
	at := &offsets{group: group, share: details[0].Type == typeShare, current: kadm.Offsets{}}
	if err := at.read(ctx, conn); err != nil {
		return err
	}
	wanted := kadm.TopicsSet{}
	at.current.Each(func(o kadm.Offset) {
		if ps, ok := named[o.Topic]; ok && (len(ps) == 0 || slices.Contains(ps, o.Partition)) {
			wanted.Add(o.Topic, o.Partition)
		}
	})
	if len(wanted) == 0 {
		return cli.Hintf(fmt.Errorf("group %s has no offset of %s", group, strings.Join(topics, " ")), "`daybook group describe %s` shows those it has.", group)
	}
	result, err := at.forget(ctx, conn, named, wanted)
	if err != nil {
		return err
	}
	return reportForgotten(g, group, wanted, result)
}

func (at *offsets) forget(ctx context.Context, conn *cli.Conn, named map[string][]int32, wanted kadm.TopicsSet) (map[place]error, error) {
	result := map[place]error{}
	what := "delete offsets of group " + at.group
	if !at.share {
		answers, err := conn.Admin.DeleteOffsets(ctx, at.group, wanted)
		if err != nil {
			return nil, cli.Refused(what, err, "")
		}
		answers.EachError(func(t string, p int32, err error) { result[place{t, p}] = err })
		return result, nil
	}
	for topic, ps := range named {
		if len(ps) > 0 {
			return nil, cli.Usagef("--topic %s: a share group forgets whole topics only", topic)
		}
	}
	answers, err := conn.Admin.DeleteShareGroupOffsets(ctx, at.group, wanted.Topics()...)
	if err != nil {
		return nil, cli.Refused(what, err, "")
	}
	wanted.Each(func(t string, p int32) { result[place{t, p}], _ = answers.Lookup(t) })
	return result, nil
}

func reportForgotten(g *cli.Globals, group string, wanted kadm.TopicsSet, result map[place]error) error {
	type forgotten struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
	}
	out := []forgotten{}
	var failures []error
	for _, t := range wanted.Sorted() {
		for _, p := range t.Partitions {
			if err := result[place{t.Topic, p}]; err != nil {
				failures = append(failures, cli.Refused(fmt.Sprintf("delete the offset of %s-%d", t.Topic, p), err, ""))
				continue
			}
			out = append(out, forgotten{t.Topic, p})
		}
	}
	err := g.Print(out, func(w io.Writer) error {
		for _, f := range out {
			fmt.Fprintf(w, "Group %s forgot its offset of %s-%d.\n", group, f.Topic, f.Partition)
		}
		return nil
	})
	return g.Finish(err, failures)
}
