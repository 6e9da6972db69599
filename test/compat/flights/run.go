//go:build unix

package flights

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/test/compat/harness"
)

const (
	partitions   = 12
	members      = 3
	produceLimit = 5 * time.Minute
	consumeLimit = 4 * time.Minute
)

// Client is one library's program.
type Client struct {
	Name    string
	Produce func(brokers, topic string, s *Source) (harness.Command, error)
	Consume func(brokers, group, out string, topics []string) harness.Command
}

// flow is one run against one broker.
type flow struct {
	env     *harness.Env
	broker  *harness.Broker
	clients []Client
	sources map[string]*Source // by topic
	admin   *kadm.Client
	report  *harness.Report
}

// Run produces the file with all clients at once, each to a topic of its own, and has every
// client's group read the topics of all the others. Each client sends its share, every fifth
// record; when whole is set, each sends the whole file.
func Run(ctx context.Context, env *harness.Env, broker *harness.Broker, clients []Client, whole bool, r *harness.Report) error {
	sources, err := shares(env, clients, whole)
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	f := &flow{env: env, broker: broker, clients: clients, sources: sources, admin: kadm.NewClient(cl), report: r}
	if err := f.produceAll(ctx); err != nil {
		return err
	}
	for _, c := range clients {
		f.consume(ctx, c)
	}
	return nil
}

func shares(env *harness.Env, clients []Client, whole bool) (map[string]*Source, error) {
	all, err := ReadSource(env.Flights())
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(env.Run, "flights")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	sources := make(map[string]*Source, len(clients))
	for i, c := range clients {
		sources[topicOf(c)] = all
		if !whole {
			sources[topicOf(c)], err = all.Share(filepath.Join(dir, c.Name+".tsv"), i, len(clients))
			if err != nil {
				return nil, err
			}
		}
	}
	return sources, nil
}

func topicOf(c Client) string { return "flights." + c.Name }

// produceAll runs all producers at once: the broker sees five libraries' writes mixed.
func (f *flow) produceAll(ctx context.Context) error {
	if err := f.createTopics(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, produceLimit)
	defer cancel()
	errs := make([]error, len(f.clients))
	took := make([]time.Duration, len(f.clients))
	var wg sync.WaitGroup
	for i, c := range f.clients {
		wg.Go(func() {
			begin := time.Now()
			errs[i] = f.produce(ctx, c)
			took[i] = time.Since(begin)
		})
	}
	wg.Wait()
	for i, c := range f.clients {
		f.report.Check("produce with "+c.Name, errs[i])
		f.report.Note("%s sent %d records in %.1f s", c.Name, f.sources[topicOf(c)].Len(), took[i].Seconds())
	}
	return nil
}

// createTopics and wait until they serve: Kafka answers before it does.
func (f *flow) createTopics(ctx context.Context) error {
	for _, c := range f.clients {
		if _, err := f.admin.CreateTopic(ctx, partitions, 1, nil, topicOf(c)); err != nil {
			return fmt.Errorf("create %s: %w", topicOf(c), err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, c := range f.clients {
		for {
			ends, err := f.admin.ListEndOffsets(ctx, topicOf(c))
			if err == nil && ends.Error() == nil && len(ends[topicOf(c)]) == partitions {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("topic %s does not serve: %w", topicOf(c), errors.Join(err, ends.Error(), ctx.Err()))
			}
		}
	}
	return nil
}

func (f *flow) produce(ctx context.Context, c Client) error {
	source := f.sources[topicOf(c)]
	cmd, err := c.Produce(f.broker.Addr, topicOf(c), source)
	if err != nil {
		return err
	}
	cmd.Log = f.log("produce-" + c.Name)
	if err := harness.Run(ctx, cmd); err != nil {
		return err
	}
	ends, err := f.admin.ListEndOffsets(ctx, topicOf(c))
	if err != nil {
		return err
	}
	var stored int64
	ends.Each(func(o kadm.ListedOffset) { stored += o.Offset })
	if stored != int64(source.Len()) {
		return fmt.Errorf("%d records are stored, %d were sent", stored, source.Len())
	}
	return nil
}

func (f *flow) log(name string) string {
	return filepath.Join(f.env.Run, "logs", "flights", name+".log")
}

// member is one process of a group.
type member struct {
	process   *harness.Process
	out       string
	committed atomic.Int64
	killed    bool
}

// consume runs one client's group over the topics of the others and checks what came.
func (f *flow) consume(ctx context.Context, c Client) {
	topics := maps.Clone(f.sources)
	delete(topics, topicOf(c))
	names := slices.Sorted(maps.Keys(topics))
	ctx, cancel := context.WithTimeout(ctx, consumeLimit)
	defer cancel()
	begin := time.Now()
	sums, err := f.consumeTopics(ctx, c, topics)
	if err != nil {
		f.report.Fail("a group of %s reads %s: %v", c.Name, strings.Join(names, ", "), err)
		return
	}
	records, again := 0, 0
	for _, topic := range names {
		f.report.Pass()
		records += sums[topic].Records
		again += sums[topic].Duplicates
	}
	f.report.Note("a group of %s read %d records in %.1f s, %d again after the kill",
		c.Name, records, time.Since(begin).Seconds(), again)
}

func (f *flow) consumeTopics(ctx context.Context, c Client, topics map[string]*Source) (map[string]Summary, error) {
	dir := filepath.Join(f.env.Run, "flights", c.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	group := "flights-group." + c.Name
	half := make(chan struct{})
	team, err := f.start(c, group, dir, topics, half)
	defer func() {
		for _, m := range team {
			m.process.Signal(syscall.SIGKILL)
			<-m.process.Done()
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := f.untilHalf(ctx, team, half); err != nil {
		return nil, err
	}
	kill(team, rand.N(50*time.Millisecond))
	if err := f.drained(ctx, group, slices.Collect(maps.Keys(topics)), team); err != nil {
		return nil, err
	}
	outputs, err := stop(team)
	if err != nil {
		return nil, err
	}
	sums, err := Check(topics, partitions, outputs)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	return sums, err
}

// start the members; half is closed when together they committed half of the records.
func (f *flow) start(c Client, group, dir string, topics map[string]*Source, half chan struct{}) ([]*member, error) {
	var team []*member
	var total atomic.Int64
	var once sync.Once
	sent := 0
	for _, source := range topics {
		sent += source.Len()
	}
	for i := range members {
		m := &member{out: filepath.Join(dir, fmt.Sprintf("member-%d.tsv", i))}
		cmd := c.Consume(f.broker.Addr, group, m.out, slices.Sorted(maps.Keys(topics)))
		cmd.Log = f.log(fmt.Sprintf("consume-%s-%d", c.Name, i))
		cmd.OnLine = func(line string) {
			text, ok := strings.CutPrefix(line, "committed ")
			n, err := strconv.ParseInt(text, 10, 64)
			if !ok || err != nil {
				return
			}
			if total.Add(n-m.committed.Swap(n)) >= int64(sent/2) {
				once.Do(func() { close(half) })
			}
		}
		var err error
		if m.process, err = harness.Start(cmd); err != nil {
			return team, err
		}
		team = append(team, m)
	}
	return team, nil
}

func (f *flow) untilHalf(ctx context.Context, team []*member, half <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-half:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("half of the records were not read: %w", ctx.Err())
		case <-tick.C:
			if err := f.alive(team); err != nil {
				return err
			}
		}
	}
}

// alive says which member ended without being asked to.
func (f *flow) alive(team []*member) error {
	for i, m := range team {
		select {
		case <-m.process.Done():
			if !m.killed {
				return fmt.Errorf("member %d ended early, see %s", i, f.log(fmt.Sprintf("consume-*-%d", i)))
			}
		default:
		}
	}
	return nil
}

// kill the member that did most, so that it surely holds partitions, a moment from now: the
// news that half is read comes with a commit, and a kill should not.
func kill(team []*member, delay time.Duration) {
	time.Sleep(delay)
	most := team[0]
	for _, m := range team {
		if m.committed.Load() > most.committed.Load() {
			most = m
		}
	}
	most.killed = true
	most.process.Signal(syscall.SIGKILL)
	<-most.process.Done()
}

// drained waits until the group's committed offsets are the ends of all topics.
func (f *flow) drained(ctx context.Context, group string, topics []string, team []*member) error {
	ends, err := f.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		commits, err := f.admin.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		var lag int64
		ends.Each(func(end kadm.ListedOffset) {
			at, _ := commits.Lookup(end.Topic, end.Partition)
			lag += end.Offset - max(at.At, 0)
		})
		if lag == 0 {
			return nil
		}
		if err := f.alive(team); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the group is still %d records behind: %w", lag, ctx.Err())
		case <-tick.C:
		}
	}
}

func stop(team []*member) ([]Output, error) {
	var outputs []Output
	for i, m := range team {
		if !m.killed {
			if err := m.process.Stop(30 * time.Second); err != nil {
				return nil, fmt.Errorf("member %d did not end cleanly: %w", i, err)
			}
		}
		outputs = append(outputs, Output{Path: m.out, Killed: m.killed, Committed: int(m.committed.Load())})
	}
	return outputs, nil
}
