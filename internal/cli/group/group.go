// Package group is what `daybook group` does: listing and describing groups of
// either protocol, their lag in messages and in time, and changing their
// offsets. Everything comes from Kafka's public requests; flags live in
// cmd/daybook.
package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-mq/daybook/internal/cli"
)

// The types of groups (KIP-848, KIP-932).
const (
	typeClassic  = "classic"
	typeConsumer = "consumer"
	typeShare    = "share"
)

// Summary is one group in a listing.
type Summary struct {
	Group       string `json:"group"`
	Type        string `json:"type"`
	State       string `json:"state"`
	Protocol    string `json:"protocol_type"`
	Coordinator int32  `json:"coordinator"`
}

// List prints the groups there are, of the given types and states when any.
func List(ctx context.Context, g *cli.Globals, types, states []string) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	all, err := list(ctx, conn)
	if err != nil {
		return err
	}
	out := []Summary{}
	for _, s := range all {
		if matches(types, s.Type) && matches(states, s.State) {
			out = append(out, s)
		}
	}
	return g.Print(out, func(w io.Writer) error {
		if len(out) == 0 {
			g.Note("There is no such group. `daybook consume TOPIC --group NAME` makes one.")
			return nil
		}
		table := cli.NewTable("GROUP", "TYPE", "STATE", ">COORDINATOR")
		for _, s := range out {
			table.Row(s.Group, s.Type, s.State, s.Coordinator)
		}
		_, err := table.WriteTo(w)
		return err
	})
}

func matches(wanted []string, have string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, have) })
}

func list(ctx context.Context, conn *cli.Conn) ([]Summary, error) {
	groups, err := conn.Admin.ListGroups(ctx)
	if err != nil {
		return nil, cli.Failed("list groups", err)
	}
	var out []Summary
	for _, l := range groups.Sorted() {
		kind := strings.ToLower(l.GroupType)
		if kind == "" {
			kind = typeClassic // brokers before KIP-848 do not tell
		}
		out = append(out, Summary{l.Group, kind, l.State, l.ProtocolType, l.Coordinator})
	}
	return out, nil
}

// Detail is one group in full, whatever its protocol.
type Detail struct {
	Group       string   `json:"group"`
	Type        string   `json:"type"`
	State       string   `json:"state"`
	Assignor    string   `json:"assignor"`
	Coordinator int32    `json:"coordinator"`
	Members     []Member `json:"members"`
	Partitions  []Lag    `json:"partitions"`
}

// Member is one member of a group and what it is assigned.
type Member struct {
	ID         string           `json:"member_id"`
	Instance   string           `json:"instance_id,omitempty"`
	Client     string           `json:"client_id"`
	Host       string           `json:"host"`
	Assigned   map[string]Parts `json:"assigned"`
	Subscribed []string         `json:"subscribed"`
}

// Parts are partition numbers, in order.
type Parts []int32

// String prints runs as ranges: 0-3,7.
func (p Parts) String() string {
	var b strings.Builder
	for i := 0; i < len(p); {
		j := i
		for j+1 < len(p) && p[j+1] == p[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if j > i {
			fmt.Fprintf(&b, "%d-%d", p[i], p[j])
		} else {
			fmt.Fprintf(&b, "%d", p[i])
		}
		i = j + 1
	}
	return b.String()
}

// live reports whether the group has members, so that its offsets are theirs.
func (d *Detail) live() bool { return len(d.Members) > 0 }

// topics are those that members are assigned or subscribed to.
func (d *Detail) topics() map[string]bool {
	topics := map[string]bool{}
	for _, m := range d.Members {
		for t := range m.Assigned {
			topics[t] = true
		}
		for _, t := range m.Subscribed {
			topics[t] = true
		}
	}
	return topics
}

// errNoGroup is the answer for a group that is neither listed nor described.
func errNoGroup(name string) error {
	return cli.Refused("group "+name, kerr.GroupIDNotFound, "there is no such group")
}

// describe asks for groups by name, in the order given.
func describe(ctx context.Context, conn *cli.Conn, names ...string) ([]*Detail, error) {
	listed, err := list(ctx, conn)
	if err != nil {
		return nil, err
	}
	byType := map[string][]string{}
	for _, name := range names {
		i := slices.IndexFunc(listed, func(s Summary) bool { return s.Group == name })
		if i < 0 {
			return nil, errNoGroup(name)
		}
		byType[listed[i].Type] = append(byType[listed[i].Type], name)
	}
	found := map[string]*Detail{}
	for kind, of := range byType {
		switch kind {
		case typeConsumer:
			err = describeConsumer(ctx, conn, of, found)
		case typeShare:
			err = describeShare(ctx, conn, of, found)
		default:
			err = describeClassic(ctx, conn, kind, of, found)
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]*Detail, 0, len(names))
	for _, name := range names {
		if found[name] == nil {
			return nil, errNoGroup(name)
		}
		out = append(out, found[name])
	}
	return out, nil
}

func describeClassic(ctx context.Context, conn *cli.Conn, kind string, names []string, into map[string]*Detail) error {
	groups, err := conn.Admin.DescribeGroups(ctx, names...)
	if err != nil {
		return cli.Failed("describe groups", err)
	}
	for _, d := range groups {
		if d.Err != nil {
			return cli.Refused("group "+d.Group, d.Err, d.ErrMessage)
		}
		out := &Detail{Group: d.Group, Type: kind, State: d.State, Assignor: d.Protocol, Coordinator: d.Coordinator.NodeID, Members: []Member{}}
		for _, m := range d.Members {
			member := Member{ID: m.MemberID, Instance: deref(m.InstanceID), Client: m.ClientID, Host: m.ClientHost, Assigned: map[string]Parts{}, Subscribed: []string{}}
			if a, ok := m.Assigned.AsConsumer(); ok {
				for _, t := range a.Topics {
					member.Assigned[t.Topic] = sorted(t.Partitions)
				}
			}
			if j, ok := m.Join.AsConsumer(); ok {
				member.Subscribed = append(member.Subscribed, j.Topics...)
			}
			out.Members = append(out.Members, member)
		}
		into[d.Group] = out.inOrder()
	}
	return nil
}

func describeConsumer(ctx context.Context, conn *cli.Conn, names []string, into map[string]*Detail) error {
	groups, err := conn.Admin.DescribeConsumerGroups(ctx, names...)
	if err != nil {
		return cli.Failed("describe groups", err)
	}
	for _, d := range groups {
		if d.Err != nil {
			return cli.Refused("group "+d.Group, d.Err, "")
		}
		out := &Detail{Group: d.Group, Type: typeConsumer, State: d.State, Assignor: d.AssignorName, Coordinator: d.Coordinator.NodeID, Members: []Member{}}
		for _, m := range d.Members {
			out.Members = append(out.Members, Member{
				ID: m.MemberID, Instance: deref(m.InstanceID), Client: m.ClientID, Host: m.ClientHost,
				Assigned: parts(m.Assignment), Subscribed: append([]string{}, m.SubscribedTopics...),
			})
		}
		into[d.Group] = out.inOrder()
	}
	return nil
}

func describeShare(ctx context.Context, conn *cli.Conn, names []string, into map[string]*Detail) error {
	groups, err := conn.Admin.DescribeShareGroups(ctx, names...)
	if err != nil {
		return cli.Failed("describe groups", err)
	}
	for _, d := range groups {
		if d.Err != nil {
			return cli.Refused("group "+d.GroupID, d.Err, "")
		}
		out := &Detail{Group: d.GroupID, Type: typeShare, State: d.GroupState, Assignor: d.Assignor, Coordinator: d.Coordinator.NodeID, Members: []Member{}}
		for _, m := range d.Members {
			out.Members = append(out.Members, Member{
				ID: m.MemberID, Client: m.ClientID, Host: m.ClientHost,
				Assigned: parts(m.Assignment), Subscribed: append([]string{}, m.SubscribedTopicNames...),
			})
		}
		into[d.GroupID] = out.inOrder()
	}
	return nil
}

func (d *Detail) inOrder() *Detail {
	sort.Slice(d.Members, func(i, j int) bool {
		a, b := d.Members[i], d.Members[j]
		if a.Client != b.Client {
			return a.Client < b.Client
		}
		return a.ID < b.ID
	})
	return d
}

func parts(set kadm.TopicsSet) map[string]Parts {
	out := map[string]Parts{}
	set.EachPartitions(func(t string, ps []int32) { out[t] = sorted(ps) })
	return out
}

func sorted(ps []int32) Parts {
	ps = slices.Clone(ps)
	slices.Sort(ps)
	return ps
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Delete deletes groups that have no members, with their offsets.
func Delete(ctx context.Context, g *cli.Globals, names []string, yes bool) error {
	if err := g.Confirm(ctx, yes, fmt.Sprintf("This deletes the offsets of group %s for good.", strings.Join(names, ", "))); err != nil {
		return err
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	answers, err := conn.Admin.DeleteGroups(ctx, names...)
	if err != nil {
		return cli.Failed("delete groups", err)
	}
	type deleted struct {
		Group string `json:"group"`
	}
	out := []deleted{}
	var failures []error
	for _, a := range answers.Sorted() {
		switch {
		case errors.Is(a.Err, kerr.GroupIDNotFound):
			failures = append(failures, errNoGroup(a.Group))
		case errors.Is(a.Err, kerr.NonEmptyGroup):
			failures = append(failures, cli.Refused("delete group "+a.Group, a.Err, "it still has members"))
		case a.Err != nil:
			failures = append(failures, cli.Refused("delete group "+a.Group, a.Err, ""))
		default:
			out = append(out, deleted{a.Group})
		}
	}
	err = g.Print(out, func(w io.Writer) error {
		for _, d := range out {
			fmt.Fprintf(w, "Deleted group %s.\n", d.Group)
		}
		return nil
	})
	return g.Finish(err, failures)
}
