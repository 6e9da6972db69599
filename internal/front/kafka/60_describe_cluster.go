package kafka

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// Endpoint types of DescribeCluster (KIP-919).
const (
	endpointBrokers     = 1
	endpointControllers = 2
)

// DescribeCluster, 0-2. v1 asks for brokers or controllers (KIP-919); clients that
// want controllers speak to those directly, and this is a broker's address.
func (s *Server) describeCluster(_ context.Context, r *conn.Request, in *kmsg.DescribeClusterRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.EndpointType = in.EndpointType
	resp.ControllerID = -1
	if r.Version >= 1 && in.EndpointType != endpointBrokers {
		err := coded(codes.UnsupportedEndpointType, "endpoint type %d is unknown", in.EndpointType)
		if in.EndpointType == endpointControllers {
			err = coded(codes.MismatchedEndpointType, "this address is a broker's; ask for brokers (bootstrap servers, not bootstrap controllers)")
		}
		resp.ErrorCode, resp.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		return resp, nil
	}
	resp.ClusterID = s.opts.Cluster.ID()
	resp.ControllerID = s.opts.Cluster.Self()
	resp.ClusterAuthorizedOperations = math.MinInt32
	if in.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	b := kmsg.NewDescribeClusterResponseBroker()
	b.NodeID = s.opts.Cluster.Self()
	b.Host, b.Port = s.advertised(r.Conn)
	resp.Brokers = append(resp.Brokers, b)
	return resp, nil
}
