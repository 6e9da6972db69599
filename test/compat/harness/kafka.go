//go:build unix

package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// kafkaHeap keeps the comparison broker small beside what is measured.
const kafkaHeap = "-Xmx768m"

// kafkaConfig is one node that is broker and controller. What differs from the defaults is
// what one node needs, and the delay and limit that franz-go's own CI sets too.
const kafkaConfig = `process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://%[4]s:%[1]d
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:%[2]d
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=%[3]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.share.delivery.count.limit=10
message.max.bytes=%[5]d
`

// StartKafka formats dir/data if it is empty and starts Kafka on free loopback ports.
func StartKafka(ctx context.Context, env *Env, dir string, o Options) (*Broker, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config, data, log := filepath.Join(dir, "server.properties"), filepath.Join(dir, "data"), filepath.Join(dir, "broker.log")
	if _, err := os.Stat(config); err != nil {
		if err := formatKafka(ctx, env, config, data, log, o); err != nil {
			return nil, err
		}
	}
	addr, err := kafkaAddr(config)
	if err != nil {
		return nil, err
	}
	p, err := Start(Command{Log: log, Args: []string{
		"java", kafkaHeap, "-XX:+UseG1GC", "-cp", env.ClassPath(),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "kafka.Kafka", config,
	}})
	if err != nil {
		return nil, err
	}
	b := &Broker{Addr: addr, Kind: "kafka", Dir: dir, process: p}
	b.restart = func() error {
		next, err := StartKafka(ctx, env, dir, o)
		if err == nil {
			b.process = next.process
		}
		return err
	}
	return b, waitFor(ctx, p, log, func() bool { return reachable(addr) })
}

func formatKafka(ctx context.Context, env *Env, config, data, log string, o Options) error {
	broker, err := freePort()
	if err != nil {
		return err
	}
	controller, err := freePort()
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, kafkaConfig, broker, controller, data,
		cmp.Or(o.Advertise, "127.0.0.1"), cmp.Or(o.MaxMessage, 1048588))
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return err
	}
	return Run(ctx, Command{Log: log, Args: []string{
		"java", "-cp", env.ClassPath(), "kafka.tools.StorageTool",
		"format", "-t", "ZGF5Ym9vay1jb21wYXQtMQ", "-c", config,
	}})
}

// kafkaAddr reads the listener back, so that a restart keeps its address.
func kafkaAddr(config string) (string, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if addr, ok := strings.CutPrefix(line, "listeners=PLAINTEXT://"); ok {
			addr, _, _ = strings.Cut(addr, ",")
			return addr, nil
		}
	}
	return "", fmt.Errorf("%s names no listener", config)
}

// KafkaVerb is test/compat/kafka: start a broker that outlives this process, or stop it.
func KafkaVerb(ctx context.Context, env *Env, verb, dir string) error {
	if dir == "" {
		dir = filepath.Join(env.Cache, "kafka")
	}
	pidFile := filepath.Join(dir, "pid")
	switch verb {
	case "start":
		if err := env.Install(ctx, PartJava); err != nil {
			return err
		}
		b, err := StartKafka(ctx, env, dir, Options{})
		if err != nil {
			return err
		}
		fmt.Println(b.Addr)
		return os.WriteFile(pidFile, []byte(strconv.Itoa(b.process.Pid())), 0o644)
	case "stop":
		text, err := os.ReadFile(pidFile)
		if err != nil {
			return fmt.Errorf("no Kafka was started in %s: %w", dir, err)
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			return err
		}
		if err := os.Remove(pidFile); err != nil {
			return err
		}
		return syscall.Kill(-pid, syscall.SIGTERM)
	}
	return fmt.Errorf("-kafka is start or stop, not %q", verb)
}
