// Package cluster is the seam behind which brokers know each other: who this broker
// is and who leads a partition. Solo, one broker that leads everything, is
// the implementation there is; one over etcd takes its place behind the same
// contract. It stores no topics and knows no addresses: a front advertises those.
package cluster

import "github.com/daybook-mq/daybook/internal/model"

// Cluster is what a broker knows of its cluster. Its methods may be called from any
// goroutine and do not block.
type Cluster interface {
	// ID names the cluster; it stays the same for its whole life.
	ID() string
	// Self is this broker's id.
	Self() int32
	// Leader says which broker leads a partition. The leader's own partition
	// knows the leader epoch, which its store hands out.
	Leader(model.PartitionID) int32
}

// Solo is a cluster of one.
type Solo struct {
	ClusterID string
	NodeID    int32
}

// ID names the cluster.
func (s Solo) ID() string { return s.ClusterID }

// Self is the one broker.
func (s Solo) Self() int32 { return s.NodeID }

// Leader is the one broker.
func (s Solo) Leader(model.PartitionID) int32 { return s.NodeID }
