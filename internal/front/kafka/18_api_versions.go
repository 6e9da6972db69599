package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// ApiVersions, 0-5. v3 is flexible and names the client's software (KIP-511) and
// carries features (KIP-584); v4 fixes features of minimum level 0; v5 carries the
// cluster and node that the client means to talk to (KIP-1242).
//
// Versions above the maximum never get here: conn answers them.
func (s *Server) apiVersions(_ context.Context, r *conn.Request, in *kmsg.ApiVersionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrApiVersionsResponse()
	if r.Version >= 3 {
		if !softwareName(in.ClientSoftwareName) || !softwareName(in.ClientSoftwareVersion) {
			resp.ErrorCode = codes.InvalidRequest
			return resp, nil
		}
		r.Conn.SetSoftware(in.ClientSoftwareName, in.ClientSoftwareVersion)
	}
	if code := s.target(in); code != codes.None {
		resp.ErrorCode = code
		return resp, nil
	}
	resp.ApiKeys = s.net.Table().Ranges()
	resp.FinalizedFeaturesEpoch = 1
	for _, f := range s.feat {
		if f.min > 0 || r.Version >= 4 { // older clients refuse a minimum of 0
			sup := kmsg.NewApiVersionsResponseSupportedFeature()
			sup.Name, sup.MinVersion, sup.MaxVersion = f.name, f.min, f.max
			resp.SupportedFeatures = append(resp.SupportedFeatures, sup)
		}
		if f.used > 0 {
			fin := kmsg.NewApiVersionsResponseFinalizedFeature()
			fin.Name, fin.MinVersionLevel, fin.MaxVersionLevel = f.name, f.used, f.used
			resp.FinalizedFeatures = append(resp.FinalizedFeatures, fin)
		}
	}
	return resp, nil
}

// target checks whom a client of v5 means to talk to: both cluster and node, or
// neither; somebody else's means that its bootstrap addresses are out of date.
func (s *Server) target(in *kmsg.ApiVersionsRequest) codes.Code {
	switch {
	case (in.ClusterID == nil) != (in.NodeID == -1):
		return codes.InvalidRequest
	case in.ClusterID == nil:
		return codes.None
	case *in.ClusterID != s.opts.Cluster.ID() || in.NodeID != s.opts.Cluster.Self():
		return codes.RebootstrapRequired
	}
	return codes.None
}

// softwareName holds for letters, digits, dot and dash, not at the ends (KIP-511).
func softwareName(s string) bool {
	alnum := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	for i := range len(s) {
		inner := i > 0 && i < len(s)-1
		if !alnum(s[i]) && !(inner && (s[i] == '.' || s[i] == '-')) {
			return false
		}
	}
	return len(s) > 0
}
