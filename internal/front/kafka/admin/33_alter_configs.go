package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// resource names what has settings.
type resource struct {
	typ  kmsg.ConfigResourceType
	name string
}

// AlterConfigs, 0-2: replaces all settings of a resource; what is not named goes
// back to its default. IncrementalAlterConfigs is what tools should use.
func (h *Handlers) alterConfigs(ctx context.Context, r *conn.Request, in *kmsg.AlterConfigsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterConfigsResponse()
	twice := repeated(in.Resources, func(q kmsg.AlterConfigsRequestResource) resource {
		return resource{q.ResourceType, q.ResourceName}
	})
	for i := range in.Resources {
		q := &in.Resources[i]
		var err error
		if twice[resource{q.ResourceType, q.ResourceName}] {
			err = codes.Errorf(codes.InvalidRequest, "the resource is named twice in the request")
		} else {
			err = h.replaceConfigs(ctx, q, in.ValidateOnly)
		}
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = q.ResourceType, q.ResourceName
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

func (h *Handlers) replaceConfigs(ctx context.Context, q *kmsg.AlterConfigsRequestResource, validateOnly bool) error {
	configs := map[string]string{}
	for _, c := range q.Configs {
		if c.Value == nil {
			return codes.Errorf(codes.InvalidRequest, "setting %s has no value; leave it out to give it its default", c.Name)
		}
		configs[c.Name] = *c.Value
	}
	switch q.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if _, err := h.topic(q.ResourceName); err != nil {
			return err
		}
		return h.Topics.ReplaceTopic(ctx, q.ResourceName, configs, validateOnly)
	case kmsg.ConfigResourceTypeBroker:
		if err := h.checkNode(q.ResourceName); err != nil {
			return err
		}
		return h.Topics.ReplaceBroker(ctx, configs, validateOnly)
	case kmsg.ConfigResourceTypeGroupConfig:
		return h.Topics.AlterGroup(ctx, q.ResourceName, h.replaceGroupOps(q.ResourceName, configs), validateOnly)
	}
	return notOffered(q.ResourceType)
}

// replaceGroupOps turns the whole settings of a group into changes.
func (h *Handlers) replaceGroupOps(group string, configs map[string]string) (ops []topics.ConfigOp) {
	for _, d := range h.Topics.DescribeGroup(group) {
		if _, kept := configs[d.Key]; !kept && d.Source == topics.SourceGroup {
			ops = append(ops, topics.ConfigOp{Key: d.Key, Op: topics.OpDelete})
		}
	}
	for k, v := range configs {
		ops = append(ops, topics.ConfigOp{Key: k, Value: v})
	}
	return ops
}
