package cli

import "github.com/twmb/franz-go/pkg/kgo"

// Isolation finds an isolation level by name, ours or Kafka's.
func Isolation(name string) (kgo.IsolationLevel, error) {
	switch name {
	case "committed", "read_committed":
		return kgo.ReadCommitted(), nil
	case "uncommitted", "read_uncommitted":
		return kgo.ReadUncommitted(), nil
	}
	return kgo.IsolationLevel{}, Usagef("--isolation is %q: it must be committed or uncommitted", name)
}
