// Package admin serves the Kafka requests that manage topics, settings and the
// node: one numbered file for each API key. What a cluster would do over many
// nodes is answered truthfully for one. It keeps nothing: the catalogue does.
package admin

import (
	"strconv"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/quota"
)

// Feature is one finalized feature and its level (KIP-584).
type Feature struct {
	Name  string
	Level int16
}

// Handlers are the requests of this package. All fields are set at start.
type Handlers struct {
	Topics *topics.Catalogue
	NodeID int32
	// AssumeReplicas accepts any replication factor and assignment.
	AssumeReplicas bool
	// LogDir is the data directory as clients are told, Space the room on its
	// file system in bytes (-1, -1 when it is not known).
	LogDir string
	Space  func() (total, usable int64)
	// Features are what UpdateFeatures is compared with.
	Features []Feature
	// Quotas count the partitions that clients create and delete.
	Quotas *quota.Limiter
	// Advertised is the address that a client is told for this node.
	Advertised func(*conn.Conn) (host string, port int32)
}

// APIs are the rows of the version table.
func (h *Handlers) APIs() []conn.API {
	return []conn.API{
		conn.Handle(2, 7, h.createTopics),
		conn.Handle(1, 6, h.deleteTopics),
		conn.Handle(0, 2, h.deleteRecords),
		conn.Handle(1, 4, h.describeConfigs),
		conn.Handle(0, 2, h.alterConfigs),
		conn.Handle(1, 2, h.alterReplicaLogDirs),
		conn.Handle(1, 5, h.describeLogDirs),
		conn.Handle(0, 3, h.createPartitions),
		conn.Handle(0, 2, h.electLeaders),
		conn.Handle(0, 1, h.incrementalAlterConfigs),
		conn.Handle(0, 1, h.alterPartitionReassignments),
		conn.Handle(0, 0, h.listPartitionReassignments),
		conn.Handle(0, 1, h.describeClientQuotas),
		conn.Handle(0, 1, h.alterClientQuotas),
		conn.Handle(0, 2, h.describeQuorum),
		conn.Handle(0, 2, h.updateFeatures),
		conn.Handle(0, 0, h.getTelemetrySubscriptions),
		conn.Handle(0, 0, h.pushTelemetry),
		conn.Handle(0, 1, h.listConfigResources),
	}
}

// concurrency bounds the changes of one request that are under way together: they
// share the journal's groups, so many topics cost few disk writes.
const concurrency = 64

// each calls f for 0 to n-1, several at a time.
func each(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, concurrency)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// topic finds a topic by name.
func (h *Handlers) topic(name string) (*topics.Topic, error) {
	if t, ok := h.Topics.ByName(name); ok {
		return t, nil
	}
	if err := topics.CheckName(name); err != nil {
		return nil, codes.Errorf(codes.InvalidTopicException, "%s", model.ClientText(err))
	}
	return nil, codes.Errorf(codes.UnknownTopicOrPartition, "topic %q does not exist; list the topics that do", name)
}

// checkPartition says why a topic has no such partition.
func (h *Handlers) checkPartition(name string, index int32) error {
	t, err := h.topic(name)
	if err != nil {
		return err
	}
	if _, ok := t.Partition(index); !ok {
		return codes.Errorf(codes.UnknownTopicOrPartition, "topic %q has no partition %d; it has %d", name, index, len(t.Partitions))
	}
	return nil
}

// notInternal refuses changes to the broker's own topics, whose partition counts
// and contents its coordinators rely on.
func notInternal(t *topics.Topic, what string) error {
	if t.Internal {
		return codes.Errorf(codes.PolicyViolation, "topic %q is the broker's own; it cannot be %s", t.Name, what)
	}
	return nil
}

// checkReplicas holds a replica list against the one node that there is.
func (h *Handlers) checkReplicas(replicas []int32) error {
	switch {
	case len(replicas) == 0:
		return codes.Errorf(codes.InvalidReplicaAssignment, "the replica list is empty")
	case h.AssumeReplicas:
		return nil
	case len(replicas) > 1 || replicas[0] != h.NodeID:
		return codes.Errorf(codes.InvalidReplicaAssignment, "replicas %v: node %d is the only one", replicas, h.NodeID)
	}
	return nil
}

// repeated lists what occurs more than once.
func repeated[T any, K comparable](list []T, key func(T) K) map[K]bool {
	seen, twice := map[K]bool{}, map[K]bool{}
	for _, v := range list {
		k := key(v)
		if seen[k] {
			twice[k] = true
		}
		seen[k] = true
	}
	return twice
}

// checkNode accepts this node's id as a resource name; empty means every node.
func (h *Handlers) checkNode(name string) error {
	if name == "" || name == strconv.Itoa(int(h.NodeID)) {
		return nil
	}
	return codes.Errorf(codes.InvalidRequest, "broker %q: node %d is the only one (an empty name means the default of all)", name, h.NodeID)
}

// mutate counts n partitions against the client's quota (KIP-599). A client that
// owes already is refused where the request's version knows the error, and only
// delayed afterwards where it does not.
func (h *Handlers) mutate(r *conn.Request, n int, strictFrom int16) error {
	if r.Version < strictFrom {
		h.Quotas.Charge(quota.Mutation, r.User(), r.ClientID, float64(n))
		return nil
	}
	if wait, ok := h.Quotas.Spend(quota.Mutation, r.User(), r.ClientID, float64(n)); !ok {
		return codes.Errorf(codes.ThrottlingQuotaExceeded, "the quota %s is used up; try again in %v", quota.Mutation, wait.Round(time.Millisecond))
	}
	return nil
}
