package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// ListGroups, 0-5. v4 filters by state (KIP-518), v5 by type (KIP-848); an empty
// filter lets all through, and case does not matter.
func (s *Server) listGroups(_ context.Context, _ *conn.Request, in *kmsg.ListGroupsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListGroupsResponse()
	for _, g := range s.opts.Groups.List() {
		if !matches(in.StatesFilter, g.State) || !matches(in.TypesFilter, g.Type) {
			continue
		}
		out := kmsg.NewListGroupsResponseGroup()
		out.Group, out.ProtocolType, out.GroupState, out.GroupType = g.ID, g.ProtocolType, g.State, g.Type
		resp.Groups = append(resp.Groups, out)
	}
	if s.opts.Shares == nil || !matches(in.TypesFilter, "share") {
		return resp, nil
	}
	for _, g := range s.opts.Shares.List() {
		if matches(in.StatesFilter, g.State) {
			out := kmsg.NewListGroupsResponseGroup()
			out.Group, out.ProtocolType, out.GroupState, out.GroupType = g.ID, "share", g.State, "share"
			resp.Groups = append(resp.Groups, out)
		}
	}
	return resp, nil
}

func matches(filter []string, v string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, v) })
}
