package admin

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// ListConfigResources, 0-1 (KIP-1142). v0 lists client metrics subscriptions, of
// which there are none; v1 lists what has settings, of the types asked for or all.
func (h *Handlers) listConfigResources(_ context.Context, r *conn.Request, in *kmsg.ListConfigResourcesRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListConfigResourcesResponse()
	all := []int8{
		int8(kmsg.ConfigResourceTypeTopic), int8(kmsg.ConfigResourceTypeBroker), int8(kmsg.ConfigResourceTypeBrokerLogger),
		int8(kmsg.ConfigResourceTypeClientMetrics), int8(kmsg.ConfigResourceTypeGroupConfig),
	}
	types := in.ResourceTypes
	switch {
	case r.Version == 0:
		types = []int8{int8(kmsg.ConfigResourceTypeClientMetrics)}
	case len(types) == 0:
		types = all
	}
	for _, t := range types {
		if !slices.Contains(all, t) {
			resp.ErrorCode = codes.UnsupportedVersion
			return resp, nil
		}
	}
	for _, t := range all {
		if !slices.Contains(types, t) {
			continue
		}
		for _, name := range h.configured(kmsg.ConfigResourceType(t)) {
			c := kmsg.NewListConfigResourcesResponseConfigResource()
			c.Name, c.Type = name, t
			resp.ConfigResources = append(resp.ConfigResources, c)
		}
	}
	return resp, nil
}

// configured names the resources of a type that have settings.
func (h *Handlers) configured(typ kmsg.ConfigResourceType) (names []string) {
	switch typ {
	case kmsg.ConfigResourceTypeTopic:
		for _, t := range h.Topics.All() {
			names = append(names, t.Name)
		}
	case kmsg.ConfigResourceTypeBroker:
		names = []string{strconv.Itoa(int(h.NodeID))}
	case kmsg.ConfigResourceTypeGroupConfig:
		names = h.Topics.Groups()
	}
	return names
}
