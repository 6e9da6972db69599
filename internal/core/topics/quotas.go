package topics

import (
	"context"
	"encoding/json"

	"github.com/daybook-mq/daybook/internal/core/statelog"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/quota"
)

// quotaKey begins the keys of quota records; the entity follows as JSON, with
// null for the default.
const quotaKey = "quota/"

// QuotaOp sets one limit of an entity, or removes it.
type QuotaOp struct {
	Kind   quota.Kind
	Value  float64
	Remove bool
}

// Quotas gives the client quotas as they are now.
func (c *Catalogue) Quotas() *quota.Table { return c.quotas.Load() }

// AlterQuota changes the limits of one entity durably. ClassInvalid.
func (c *Catalogue) AlterQuota(ctx context.Context, e quota.Entity, ops []QuotaOp, validateOnly bool) error {
	if e == (quota.Entity{}) {
		return model.Err(model.ClassInvalid, "a quota needs a user, a client id, or both")
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	limits := c.Quotas().Of(e)
	for _, op := range ops {
		if op.Remove {
			limits[op.Kind] = 0
			continue
		}
		if err := op.Kind.Check(op.Value); err != nil {
			return model.Err(model.ClassInvalid, err.Error())
		}
		limits[op.Kind] = op.Value
	}
	if validateOnly {
		return nil
	}
	key := quotaKey + entityName(e)
	if limits == (quota.Limits{}) {
		return c.commit(ctx, statelog.Record{Key: []byte(key)}, nil)
	}
	value := map[string]float64{}
	for k, v := range limits {
		if v > 0 {
			value[quota.Kind(k).String()] = v
		}
	}
	return c.commit(ctx, encodeRecord(key, value), nil)
}

// entityName is an entity as it is stored: a JSON object, its keys in order.
func entityName(e quota.Entity) string {
	parts := map[string]*string{}
	put := func(key string, n quota.Name) {
		switch n.Match {
		case quota.Exact:
			parts[key] = &n.Value
		case quota.Default:
			parts[key] = nil
		}
	}
	put("user", e.User)
	put("client-id", e.ClientID)
	return string(encodeRecord("", parts).Value)
}

func parseEntity(name string) (e quota.Entity, err error) {
	var parts map[string]*string
	if err := json.Unmarshal([]byte(name), &parts); err != nil {
		return e, err
	}
	get := func(key string) quota.Name {
		v, ok := parts[key]
		switch {
		case !ok:
			return quota.Name{}
		case v == nil:
			return quota.AnyOther
		}
		return quota.Of(*v)
	}
	return quota.Entity{User: get("user"), ClientID: get("client-id")}, nil
}

// applyQuotaLocked takes in one entity's limits. Kinds of a later release are
// passed over.
func (c *Catalogue) applyQuotaLocked(name string, value []byte) error {
	e, err := parseEntity(name)
	if err != nil {
		return badRecord(quotaKey+name, err)
	}
	var stored map[string]float64
	if value != nil {
		if err := json.Unmarshal(value, &stored); err != nil {
			return badRecord(quotaKey+name, err)
		}
	}
	var limits quota.Limits
	for key, v := range stored {
		if k, ok := quota.KindOf(key); ok {
			limits[k] = v
		}
	}
	c.quotas.Store(c.Quotas().With(e, limits))
	return nil
}
