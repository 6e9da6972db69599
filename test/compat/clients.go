//go:build unix

package main

import (
	"os"
	"path/filepath"

	"github.com/daybook-mq/daybook/test/compat/flights"
	"github.com/daybook-mq/daybook/test/compat/harness"
)

// program is one language's client program, up to its verb.
type program struct {
	name string
	args []string
	env  []string
}

func (p program) command(verb ...string) harness.Command {
	return harness.Command{Args: append(append([]string{}, p.args...), verb...), Env: p.env}
}

func programs(env *harness.Env) []program {
	python := func(file string) []string { return []string{env.Python(), filepath.Join(env.Client("python"), file)} }
	// Python must not write byte code beside the tree's sources.
	quiet := []string{"PYTHONDONTWRITEBYTECODE=1"}
	return []program{
		{"librdkafka", python("confluent_client.py"), quiet},
		{"aiokafka", python("aiokafka_client.py"), quiet},
		{
			"kafkajs",
			[]string{"node", filepath.Join(env.Client("node"), "kafkajs_client.js")},
			[]string{"NODE_PATH=" + env.NodeModules(), "KAFKAJS_NO_PARTITIONER_WARNING=1"},
		},
		{"franz-go", []string{env.Franz()}, nil},
	}
}

// java runs a class of Kafka's or ours with a small heap.
func java(env *harness.Env, class string, args ...string) harness.Command {
	return javaOf(env.ClassPath(), class, args...)
}

func javaOf(classPath, class string, args ...string) harness.Command {
	return harness.Command{Args: append([]string{
		"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classPath,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", class,
	}, args...)}
}

func flightClients(env *harness.Env) []flights.Client {
	var clients []flights.Client
	for _, p := range programs(env) {
		clients = append(clients, flights.Client{
			Name: p.name,
			Produce: func(brokers, topic string, s *flights.Source) (harness.Command, error) {
				return p.command("produce", brokers, topic, s.Path), nil
			},
			Consume: func(brokers, group, out string, topics []string) harness.Command {
				return p.command(append([]string{"consume", brokers, group, out}, topics...)...)
			},
		})
	}
	return append(clients, flights.Client{
		Name: "java",
		Produce: func(brokers, topic string, s *flights.Source) (harness.Command, error) {
			cmd := java(env, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", brokers, "--topic", topic,
				"--reader-property", "parse.key=true", "--reader-property", "key.separator=\t")
			in, err := os.Open(s.Path)
			cmd.Stdin = in
			return cmd, err
		},
		Consume: func(brokers, group, out string, topics []string) harness.Command {
			return java(env, "GroupMember", append([]string{brokers, group, out}, topics...)...)
		},
	})
}
