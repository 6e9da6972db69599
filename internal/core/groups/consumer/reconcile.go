package consumer

import (
	"time"

	"github.com/daybook-mq/daybook/internal/model"
)

// reconcile leads a member one step towards its target: what it is not to have it
// gives up first, and what others still hold it gets when they have given it up.
func (g *Group) reconcile(now time.Time, id string, owned Partitions, fx *Effects) *Member {
	m := g.members[id]
	if m.reconciled(g.assignmentEpoch) {
		return m
	}
	c := g.step(m, owned)
	if c.same(m.current()) {
		return m
	}
	fx.do(g, SetCurrent{id, &c})
	m = g.members[id]
	if m.Classic == nil {
		delete(g.deadline, id)
		if m.State == Unrevoked {
			g.deadline[id] = now.Add(m.Rebalance)
			g.wakeBy(g.deadline[id])
		}
	}
	return m
}

func (c Current) same(d Current) bool {
	return c.Epoch == d.Epoch && c.Previous == d.Previous && c.State == d.State &&
		c.Assigned.equal(d.Assigned) && c.Revoking.equal(d.Revoking)
}

// step is the next assignment of m; owned is what it says it has, nil if nothing.
func (g *Group) step(m *Member, owned Partitions) Current {
	if m.State == Unrevoked {
		if owned == nil || len(owned.and(m.Revoking)) > 0 {
			return m.current() // it has not given up all of it yet
		}
		// It has: that ends the epoch in which it had to.
		return g.next(m, m.Epoch+1, owned)
	}
	return g.next(m, m.Epoch, owned)
}

func (g *Group) next(m *Member, epoch int32, owned Partitions) Current {
	target := g.target[m.ID]
	keep := m.Assigned.and(target)
	revoke := m.Assigned.without(target)
	c := Current{Previous: m.Epoch, Epoch: epoch, Assigned: keep}
	if epoch == m.Epoch {
		c.Previous = m.Previous
	}
	if len(revoke) > 0 && (owned == nil || len(owned.and(revoke)) > 0) {
		c.State, c.Revoking = Unrevoked, revoke
		return c
	}
	missing := target.without(keep)
	free := missing.filter(func(id model.TopicID, p int32) bool {
		_, held := g.holders[slot{id, p}]
		return !held
	})
	if g.assignmentEpoch != m.Epoch {
		c.Previous = m.Epoch
	}
	c.Epoch, c.State = g.assignmentEpoch, Settled
	c.Assigned = keep.plus(free)
	if !missing.equal(free) {
		c.State = Unreleased
	}
	return c
}
