package admin

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// DescribeConfigs, 1-4: every setting with its value, where it came from and what
// else would have given it. v3 adds types and documentation.
func (h *Handlers) describeConfigs(_ context.Context, r *conn.Request, in *kmsg.DescribeConfigsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	for _, q := range in.Resources {
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = q.ResourceType, q.ResourceName
		list, err := h.described(q.ResourceType, q.ResourceName)
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		for _, d := range list {
			if len(q.ConfigNames) == 0 || slices.Contains(q.ConfigNames, d.Key) {
				out.Configs = append(out.Configs, describedConfig(d, in))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

// described lists the settings of one resource.
func (h *Handlers) described(typ kmsg.ConfigResourceType, name string) ([]topics.Described, error) {
	switch typ {
	case kmsg.ConfigResourceTypeTopic:
		if _, err := h.topic(name); err != nil {
			return nil, err
		}
		return h.Topics.DescribeTopic(name)
	case kmsg.ConfigResourceTypeBroker:
		if err := h.checkNode(name); err != nil {
			return nil, err
		}
		list := h.Topics.DescribeBroker()
		if name == "" {
			// Only what was set for all nodes; on one node that is what was set.
			list = slices.DeleteFunc(list, func(d topics.Described) bool { return d.Source != topics.SourceDynamicBroker })
			for i := range list {
				list[i].Source = topics.SourceDynamicDefault
			}
		}
		return list, nil
	case kmsg.ConfigResourceTypeGroupConfig:
		if name == "" {
			return nil, codes.Errorf(codes.InvalidRequest, "name the group")
		}
		return h.Topics.DescribeGroup(name), nil
	case kmsg.ConfigResourceTypeClientMetrics:
		if name == "" {
			return nil, codes.Errorf(codes.InvalidRequest, "name the subscription")
		}
		return nil, nil // no metrics are asked of clients (see getTelemetrySubscriptions)
	}
	return nil, notOffered(typ)
}

func notOffered(typ kmsg.ConfigResourceType) error {
	return codes.Errorf(codes.InvalidRequest,
		"settings of resource type %d (%s) are not offered; topics (2), brokers (4) and groups (32) have some", typ, typ)
}

func describedConfig(d topics.Described, in *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value, out.ReadOnly = d.Key, &d.Value, d.ReadOnly
	out.Source, out.IsDefault = kmsg.ConfigSource(d.Source), d.Source == topics.SourceDefault
	out.ConfigType = kmsg.ConfigType(d.Type)
	if in.IncludeDocumentation {
		out.Documentation = &d.Doc
	}
	if in.IncludeSynonyms {
		for _, s := range d.Synonyms {
			syn := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			syn.Name, syn.Value, syn.Source = s.Key, &s.Value, kmsg.ConfigSource(s.Source)
			out.ConfigSynonyms = append(out.ConfigSynonyms, syn)
		}
	}
	return out
}
