package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/quota"
)

// The parts that an entity can have. Quotas of addresses (ip) are not offered.
const (
	entityUser     = "user"
	entityClientID = "client-id"
)

// quotaFilter is what a description asks of one part.
type quotaFilter struct {
	match kmsg.QuotasMatchType
	name  string
}

// DescribeClientQuotas, 0-1 (KIP-546): the entities that match every component;
// strict ones have no other part.
func (h *Handlers) describeClientQuotas(_ context.Context, r *conn.Request, in *kmsg.DescribeClientQuotasRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeClientQuotasResponse()
	filters, err := quotaFilters(in)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		return resp, nil
	}
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	h.Topics.Quotas().All(func(e quota.Entity, l quota.Limits) {
		if matches(filters, entityUser, e.User, in.Strict) && matches(filters, entityClientID, e.ClientID, in.Strict) {
			resp.Entries = append(resp.Entries, quotaEntry(e, l))
		}
	})
	slices.SortFunc(resp.Entries, func(a, b kmsg.DescribeClientQuotasResponseEntry) int {
		return slices.CompareFunc(a.Entity, b.Entity, func(x, y kmsg.DescribeClientQuotasResponseEntryEntity) int {
			return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(orEmpty(x.Name), orEmpty(y.Name)))
		})
	})
	return resp, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func quotaFilters(in *kmsg.DescribeClientQuotasRequest) (map[string]quotaFilter, error) {
	out := map[string]quotaFilter{}
	for _, c := range in.Components {
		if _, twice := out[c.EntityType]; twice {
			return nil, codes.Errorf(codes.InvalidRequest, "entity type %q is named twice", c.EntityType)
		}
		switch {
		case c.EntityType == "":
			return nil, codes.Errorf(codes.InvalidRequest, "an entity type is empty")
		case c.EntityType != entityUser && c.EntityType != entityClientID:
			return nil, notLimited(c.EntityType)
		case c.MatchType < 0 || c.MatchType > 2 || (c.MatchType == kmsg.QuotasMatchTypeExact) != (c.Match != nil):
			return nil, codes.Errorf(codes.InvalidRequest, "entity type %q: match 0 needs a name; 1 (default) and 2 (any) take none", c.EntityType)
		}
		out[c.EntityType] = quotaFilter{c.MatchType, orEmpty(c.Match)}
	}
	return out, nil
}

func notLimited(entityType string) error {
	return codes.Errorf(codes.UnsupportedVersion, "quotas by %q are not offered; there are quotas by user and by client-id", entityType)
}

// matches compares one part of an entity with what is asked of it.
func matches(filters map[string]quotaFilter, typ string, n quota.Name, strict bool) bool {
	f, asked := filters[typ]
	switch {
	case !asked:
		return !strict || n.Match == quota.Absent
	case f.match == kmsg.QuotasMatchTypeExact:
		return n == quota.Of(f.name)
	case f.match == kmsg.QuotasMatchTypeDefault:
		return n.Match == quota.Default
	}
	return n.Match != quota.Absent
}

func quotaEntry(e quota.Entity, l quota.Limits) kmsg.DescribeClientQuotasResponseEntry {
	out := kmsg.NewDescribeClientQuotasResponseEntry()
	add := func(typ string, n quota.Name) {
		if n.Match == quota.Absent {
			return
		}
		p := kmsg.NewDescribeClientQuotasResponseEntryEntity()
		p.Type = typ
		if n.Match == quota.Exact {
			p.Name = &n.Value
		}
		out.Entity = append(out.Entity, p)
	}
	add(entityUser, e.User)
	add(entityClientID, e.ClientID)
	for k, v := range l {
		if v > 0 {
			value := kmsg.NewDescribeClientQuotasResponseEntryValue()
			value.Key, value.Value = quota.Kind(k).String(), v
			out.Values = append(out.Values, value)
		}
	}
	return out
}

// AlterClientQuotas, 0-1: each entry's changes are made together or not at all.
func (h *Handlers) alterClientQuotas(ctx context.Context, r *conn.Request, in *kmsg.AlterClientQuotasRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterClientQuotasResponse()
	for _, q := range in.Entries {
		err := h.alterQuota(ctx, q, in.ValidateOnly)
		out := kmsg.NewAlterClientQuotasResponseEntry()
		out.ErrorCode, out.ErrorMessage = codes.For(r.Key, err), codes.Text(err)
		for _, e := range q.Entity {
			p := kmsg.NewAlterClientQuotasResponseEntryEntity()
			p.Type, p.Name = e.Type, e.Name
			out.Entity = append(out.Entity, p)
		}
		resp.Entries = append(resp.Entries, out)
	}
	return resp, nil
}

func (h *Handlers) alterQuota(ctx context.Context, q kmsg.AlterClientQuotasRequestEntry, validateOnly bool) error {
	e, err := quotaEntity(q)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	ops := make([]topics.QuotaOp, 0, len(q.Ops))
	for _, op := range q.Ops {
		k, ok := quota.KindOf(op.Key)
		switch {
		case !ok:
			return codes.Errorf(codes.InvalidRequest, "quota %q is unknown; there are producer_byte_rate, consumer_byte_rate, request_percentage and controller_mutation_rate", op.Key)
		case seen[op.Key]:
			return codes.Errorf(codes.InvalidRequest, "quota %s is changed twice", op.Key)
		}
		seen[op.Key] = true
		ops = append(ops, topics.QuotaOp{Kind: k, Value: op.Value, Remove: op.Remove})
	}
	return h.Topics.AlterQuota(ctx, e, ops, validateOnly)
}

func quotaEntity(q kmsg.AlterClientQuotasRequestEntry) (e quota.Entity, err error) {
	for _, p := range q.Entity {
		n := quota.AnyOther
		if p.Name != nil {
			n = quota.Of(*p.Name)
		}
		part := &e.User
		switch p.Type {
		case entityUser:
		case entityClientID:
			part = &e.ClientID
		default:
			return e, notLimited(p.Type)
		}
		if part.Match != quota.Absent || p.Name != nil && *p.Name == "" {
			return e, codes.Errorf(codes.InvalidRequest, "entity type %q must have one name (null for the default)", p.Type)
		}
		*part = n
	}
	return e, nil
}
