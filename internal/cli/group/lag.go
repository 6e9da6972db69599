package group

import (
	"context"
	"fmt"
	"io"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// The states of a partition's lag.
const (
	StateOK      = "OK"
	StateWarn    = "WARN"
	StatePage    = "PAGE"
	StateStalled = "STALLED" // lag grows while the committed offset stands still
	StateUnknown = "UNKNOWN" // nothing was ever committed
	StateGone    = "GONE"    // there is a commit, but no such partition any more
)

// Lag is how far a group is behind in one partition. Fields that are not known
// are null: a group that never committed there has no lag, known or zero.
type Lag struct {
	Group     string   `json:"group"`
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Committed *int64   `json:"committed_offset"`
	Start     int64    `json:"start_offset"`
	End       int64    `json:"end_offset"` // with committed isolation the last stable offset
	Messages  *int64   `json:"lag_messages"`
	Seconds   *float64 `json:"lag_seconds"` // age of the first record not consumed; 0 when there is none
	State     string   `json:"state"`
	Member    string   `json:"member_id,omitempty"`
	Client    string   `json:"client_id,omitempty"`
	Host      string   `json:"host,omitempty"`
	Metadata  string   `json:"metadata,omitempty"`
}

// Limits are where a lag becomes a warning, and where somebody is to be woken.
type Limits struct {
	WarnMessages, PageMessages int64
	WarnAge, PageAge           time.Duration // 0: age does not count
}

// lagWorkers is how many partitions are looked at side by side.
const lagWorkers = 16

// measure fills in the partitions of a group: its commits, and what its members
// are assigned or subscribed to.
func measure(ctx context.Context, conn *cli.Conn, d *Detail, isolation kgo.IsolationLevel, limits Limits, now time.Time) error {
	commits, err := conn.Admin.FetchOffsets(ctx, d.Group)
	if err != nil {
		return cli.Failed("ask for the offsets of group "+d.Group, err)
	}
	topics := d.topics()
	commits.Each(func(o kadm.OffsetResponse) { topics[o.Topic] = true })
	if len(topics) == 0 {
		return nil
	}
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t)
	}
	details, err := conn.Admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return cli.Failed("look topics up", err)
	}
	spans, err := existingSpans(ctx, conn, details, isolation)
	if err != nil {
		return err
	}
	owners := d.owners()
	for topic, partitions := range spans {
		for partition, span := range partitions {
			l := Lag{Group: d.Group, Topic: topic, Partition: partition, Start: span.Start, End: span.End, State: StateUnknown}
			if o, ok := commits.Lookup(topic, partition); ok && o.Err == nil && o.At >= 0 {
				l.Committed, l.Metadata = &o.At, o.Metadata
			}
			if span.Records() == 0 {
				// Nothing is there to be behind of, commit or not.
				l.Messages, l.Seconds, l.State = new(int64), new(float64), StateOK
			}
			if m := owners[topic][partition]; m != nil {
				l.Member, l.Client, l.Host = m.ID, m.Client, m.Host
			}
			d.Partitions = append(d.Partitions, l)
		}
	}
	commits.Each(func(o kadm.OffsetResponse) {
		if _, ok := spans[o.Topic][o.Partition]; !ok && o.Err == nil && o.At >= 0 {
			d.Partitions = append(d.Partitions, Lag{Group: d.Group, Topic: o.Topic, Partition: o.Partition, Committed: &o.At, State: StateGone, Metadata: o.Metadata})
		}
	})
	sort.Slice(d.Partitions, func(i, j int) bool {
		a, b := d.Partitions[i], d.Partitions[j]
		if a.Topic != b.Topic {
			return a.Topic < b.Topic
		}
		return a.Partition < b.Partition
	})
	return d.lookAhead(ctx, conn, details, isolation, limits, now)
}

// existingSpans are the offsets of those topics that exist.
func existingSpans(ctx context.Context, conn *cli.Conn, details kadm.TopicDetails, isolation kgo.IsolationLevel) (cli.Spans, error) {
	var existing []string
	for _, t := range details {
		if t.Err == nil {
			existing = append(existing, t.Topic)
		}
	}
	if len(existing) == 0 {
		return cli.Spans{}, nil
	}
	spans, err := cli.ListSpans(ctx, conn.Admin, existing...)
	if err != nil {
		return nil, err
	}
	if isolation == kgo.ReadCommitted() {
		err = spans.Stable(ctx, conn.Admin, existing...)
	}
	return spans, err
}

func (d *Detail) owners() map[string]map[int32]*Member {
	owners := map[string]map[int32]*Member{}
	for i := range d.Members {
		for topic, ps := range d.Members[i].Assigned {
			if owners[topic] == nil {
				owners[topic] = map[int32]*Member{}
			}
			for _, p := range ps {
				owners[topic][p] = &d.Members[i]
			}
		}
	}
	return owners
}

// lookAhead finds the first record that the group has not consumed in each
// partition: its age is the lag in time, and without one there is no lag however
// many markers or gaps lie ahead.
func (d *Detail) lookAhead(ctx context.Context, conn *cli.Conn, topics kadm.TopicDetails, isolation kgo.IsolationLevel, limits Limits, now time.Time) error {
	var group sync.WaitGroup
	slots := make(chan struct{}, lagWorkers)
	errs := make([]error, len(d.Partitions))
	for i := range d.Partitions {
		l := &d.Partitions[i]
		if l.Committed == nil || l.State == StateGone {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = l.lookAhead(ctx, conn, topics[l.Topic], isolation, limits, now)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Lag) lookAhead(ctx context.Context, conn *cli.Conn, topic kadm.TopicDetail, isolation kgo.IsolationLevel, limits Limits, now time.Time) error {
	var messages int64
	var seconds float64
	if from := max(*l.Committed, l.Start); from < l.End {
		rec, next, err := conn.NextRecord(ctx, topic, l.Partition, from, isolation)
		if err != nil {
			return cli.Failed(fmt.Sprintf("read %s-%d", l.Topic, l.Partition), err)
		}
		if rec != nil && next < l.End {
			messages = l.End - next
			seconds = max(0, now.Sub(rec.Timestamp).Seconds())
		}
	}
	l.Messages, l.Seconds = &messages, &seconds
	l.State = limits.state(messages, seconds)
	return nil
}

func (l Limits) state(messages int64, seconds float64) string {
	age := time.Duration(seconds * float64(time.Second))
	switch {
	case messages >= l.PageMessages, l.PageAge > 0 && age >= l.PageAge:
		return StatePage
	case messages >= l.WarnMessages, l.WarnAge > 0 && age >= l.WarnAge:
		return StateWarn
	}
	return StateOK
}

// LagOptions say whose lag to show and how.
type LagOptions struct {
	Groups    []string // none: all groups
	Isolation string
	Limits    Limits
	Watch     bool
	Interval  time.Duration
	Check     bool // fail unless every state is OK
}

// ShowLag prints how far groups are behind, once or again and again.
func ShowLag(ctx context.Context, g *cli.Globals, o LagOptions) error {
	isolation, err := cli.Isolation(o.Isolation)
	if err != nil {
		return err
	}
	if o.Interval < 100*time.Millisecond {
		return cli.Usagef("--interval is %s: it must be at least 100ms", o.Interval)
	}
	if o.Watch && o.Check {
		return cli.Usagef("--watch and --check exclude each other")
	}
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var before []Lag
	for {
		lags, err := takeLags(ctx, g, conn, o, isolation)
		if err != nil {
			return err
		}
		stalled(before, lags)
		if err := printLags(g, o, lags); err != nil {
			return err
		}
		if !o.Watch {
			return verdict(o, lags)
		}
		before = lags
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(o.Interval):
		}
	}
}

func takeLags(ctx context.Context, g *cli.Globals, conn *cli.Conn, o LagOptions, isolation kgo.IsolationLevel) ([]Lag, error) {
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	names := o.Groups
	if len(names) == 0 {
		all, err := list(ctx, conn)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.Type != typeShare {
				names = append(names, s.Group)
			}
		}
	}
	details, err := describe(ctx, conn, names...)
	if err != nil {
		return nil, err
	}
	lags := []Lag{}
	for _, d := range details {
		if err := measure(ctx, conn, d, isolation, o.Limits, time.Now()); err != nil {
			return nil, err
		}
		lags = append(lags, d.Partitions...)
	}
	return lags, nil
}

// stalled marks the partitions in which the lag has grown while the committed
// offset stood still.
func stalled(before, now []Lag) {
	type key struct {
		group, topic string
		partition    int32
	}
	earlier := map[key]Lag{}
	for _, l := range before {
		earlier[key{l.Group, l.Topic, l.Partition}] = l
	}
	for i := range now {
		l := &now[i]
		e, ok := earlier[key{l.Group, l.Topic, l.Partition}]
		if !ok || l.Committed == nil || e.Committed == nil || l.Messages == nil || e.Messages == nil {
			continue
		}
		still := *l.Committed == *e.Committed
		if still && (*l.Messages > *e.Messages || e.State == StateStalled && *l.Messages > 0) {
			l.State = StateStalled
		}
	}
}

func printLags(g *cli.Globals, o LagOptions, lags []Lag) error {
	if o.Watch && g.JSON() {
		return cli.JSONLines(g.Out).Encode(struct {
			Time time.Time `json:"time"`
			Lags []Lag     `json:"lags"`
		}{time.Now(), lags})
	}
	if o.Watch && cli.Interactive(g.Out) {
		fmt.Fprint(g.Out, "\x1b[H\x1b[2J")
	}
	return g.Print(lags, func(w io.Writer) error {
		if len(lags) == 0 {
			g.Note("No group has committed anything.")
			return nil
		}
		err := writeLags(g, w, lags)
		if o.Watch && err == nil {
			_, err = fmt.Fprintln(w)
		}
		return err
	})
}

func writeLags(g *cli.Globals, w io.Writer, lags []Lag) error {
	table := cli.NewTable("GROUP", "TOPIC", ">PARTITION", ">COMMITTED", ">END", ">LAG", ">BEHIND", "STATE", "CLIENT")
	for _, l := range lags {
		committed, messages, behind, end := "-", "unknown", "unknown", fmt.Sprint(l.End)
		if l.Committed != nil {
			committed = fmt.Sprint(*l.Committed)
		}
		if l.Messages != nil {
			messages = fmt.Sprint(*l.Messages)
		}
		if l.Seconds != nil {
			behind = cli.Brief(time.Duration(*l.Seconds * float64(time.Second)))
		}
		if l.State == StateGone {
			end = "-"
		}
		table.Row(l.Group, l.Topic, l.Partition, committed, end, messages, behind, paintState(g, l.State), l.Client)
	}
	_, err := table.WriteTo(w)
	return err
}

func paintState(g *cli.Globals, state string) string {
	switch state {
	case StateOK:
		return g.Paint(cli.Green, state)
	case StatePage, StateStalled:
		return g.Paint(cli.Red, state)
	}
	return g.Paint(cli.Yellow, state)
}

func verdict(o LagOptions, lags []Lag) error {
	if !o.Check {
		return nil
	}
	bad := 0
	for _, l := range lags {
		if l.State != StateOK {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s not OK", bad, cli.Plural(int64(len(lags)), "partition"))
}
