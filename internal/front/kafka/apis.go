package kafka

import (
	"slices"

	"github.com/daybook-mq/daybook/internal/front/kafka/admin"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/front/kafka/share"
)

// apis is the version table: what is not in it is neither advertised nor served.
// Every part adds its rows; a part without its core component adds none.
func (s *Server) apis() []conn.API {
	return slices.Concat(
		s.logAPIs(),
		s.adminAPIs(),
		s.groupAPIs(),
		s.txnAPIs(),
		s.shareAPIs(),
	)
}

// logAPIs are the rows of the log: topics, records, offsets of partitions.
func (s *Server) logAPIs() []conn.API {
	rows := []conn.API{conn.Handle(0, 5, s.apiVersions)}
	if s.opts.Topics == nil {
		return rows
	}
	return append(rows,
		conn.Start(3, 13, s.produce).Shared().Advertised(0).Bulk(countProduce),
		conn.Handle(4, 18, s.fetch),
		conn.Handle(1, 11, s.listOffsets),
		conn.Handle(0, 13, s.metadata),
		conn.Handle(2, 4, s.offsetForLeaderEpoch),
		conn.Handle(0, 2, s.describeCluster),
		conn.Handle(0, 0, s.describeTopicPartitions),
	)
}

// adminAPIs are the rows that manage topics, settings and the node.
func (s *Server) adminAPIs() []conn.API {
	if s.opts.Topics == nil {
		return nil
	}
	h := &admin.Handlers{
		Topics: s.opts.Topics, NodeID: s.opts.Cluster.Self(), AssumeReplicas: s.opts.AssumeReplicas,
		LogDir: s.opts.LogDir, Space: s.opts.Space, Advertised: s.advertised, Quotas: s.quotas,
	}
	for _, f := range s.feat {
		h.Features = append(h.Features, admin.Feature{Name: f.name, Level: f.used})
	}
	return h.APIs()
}

// shareAPIs are the rows of share groups.
func (s *Server) shareAPIs() []conn.API {
	if s.opts.Shares == nil {
		return nil
	}
	h := share.New(share.Handlers{Groups: s.opts.Shares, Topics: s.opts.Topics, Now: s.opts.Now, Host: clientHost},
		int(s.opts.Topics.SettingInt("group.share.max.share.sessions")))
	return h.APIs()
}

// shareFeatures are the feature levels that share groups earn.
func (s *Server) shareFeatures() []feature {
	if s.opts.Shares == nil {
		return nil
	}
	return []feature{{"share.version", 0, 2, 2}}
}
