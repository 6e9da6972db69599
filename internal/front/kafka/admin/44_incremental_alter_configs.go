package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// IncrementalAlterConfigs, 0-1 (KIP-339): set, delete, append, subtract. The
// changes of one resource are made together or not at all.
func (h *Handlers) incrementalAlterConfigs(ctx context.Context, r *conn.Request, in *kmsg.IncrementalAlterConfigsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	twice := repeated(in.Resources, func(q kmsg.IncrementalAlterConfigsRequestResource) resource {
		return resource{q.ResourceType, q.ResourceName}
	})
	for i := range in.Resources {
		q := &in.Resources[i]
		var err error
		if twice[resource{q.ResourceType, q.ResourceName}] {
			err = codes.Errorf(codes.InvalidRequest, "the resource is named twice in the request")
		} else {
			err = h.changeConfigs(ctx, q, in.ValidateOnly)
		}
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = q.ResourceType, q.ResourceName
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

func (h *Handlers) changeConfigs(ctx context.Context, q *kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) error {
	ops, err := configOps(q.Configs)
	if err != nil {
		return err
	}
	switch q.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if _, err := h.topic(q.ResourceName); err != nil {
			return err
		}
		return h.Topics.AlterTopic(ctx, q.ResourceName, ops, validateOnly)
	case kmsg.ConfigResourceTypeBroker:
		if err := h.checkNode(q.ResourceName); err != nil {
			return err
		}
		return h.Topics.AlterBroker(ctx, ops, validateOnly)
	case kmsg.ConfigResourceTypeGroupConfig:
		return h.Topics.AlterGroup(ctx, q.ResourceName, ops, validateOnly)
	}
	return notOffered(q.ResourceType)
}

// configOps checks that each setting is changed once and that every change but a
// deletion has a value.
func configOps(configs []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]topics.ConfigOp, error) {
	seen := map[string]bool{}
	ops := make([]topics.ConfigOp, 0, len(configs))
	for _, c := range configs {
		if seen[c.Name] {
			return nil, codes.Errorf(codes.InvalidRequest, "setting %s is changed twice", c.Name)
		}
		seen[c.Name] = true
		op := topics.ConfigOp{Key: c.Name, Op: int8(c.Op)}
		if c.Value != nil {
			op.Value = *c.Value
		} else if op.Op != topics.OpDelete {
			return nil, codes.Errorf(codes.InvalidRequest, "setting %s has no value; to give it its default, delete it", c.Name)
		}
		ops = append(ops, op)
	}
	return ops, nil
}
