package consumer

// Change is one stored change of a group: the new value for a key, or its end. A
// group is the sum of its changes; later ones replace earlier ones of their key.
type Change interface {
	// apply makes the change and returns the one that takes it back.
	apply(g *Group) Change
}

// SetGroup sets the group epoch and the hash of the consumed topics; epoch 0 ends it.
type SetGroup struct {
	Epoch int32
	Hash  uint64
}

// SetMember sets what a member has told; nil ends it. Its assignment is SetCurrent's.
type SetMember struct {
	ID     string
	Member *Member
}

// SetTargetEpoch sets the epoch of the target assignment; 0 ends it.
type SetTargetEpoch struct{ Epoch int32 }

// SetTarget sets what a member is to have; nil ends it.
type SetTarget struct {
	ID     string
	Target Partitions
}

// SetCurrent sets what a member has; nil ends it.
type SetCurrent struct {
	ID      string
	Current *Current
}

// Current is the part of a member that reconciliation moves.
type Current struct {
	Epoch, Previous    int32
	State              MemberState
	Assigned, Revoking Partitions
}

func (m *Member) current() Current {
	return Current{m.Epoch, m.Previous, m.State, m.Assigned, m.Revoking}
}

func (m *Member) with(c Current) *Member {
	n := *m
	n.Epoch, n.Previous, n.State, n.Assigned, n.Revoking = c.Epoch, c.Previous, c.State, c.Assigned, c.Revoking
	return &n
}

func (c SetGroup) apply(g *Group) Change {
	old := SetGroup{g.epoch, g.hash}
	g.epoch, g.hash = c.Epoch, c.Hash
	return old
}

func (c SetTargetEpoch) apply(g *Group) Change {
	old := SetTargetEpoch{g.assignmentEpoch}
	g.assignmentEpoch = c.Epoch
	return old
}

func (c SetTarget) apply(g *Group) Change {
	old := SetTarget{c.ID, g.target[c.ID]}
	if c.Target == nil {
		delete(g.target, c.ID)
	} else {
		g.target[c.ID] = c.Target
	}
	return old
}

func (c SetMember) apply(g *Group) Change {
	old := g.members[c.ID]
	if old != nil && old.Instance != "" && g.statics[old.Instance] == c.ID {
		delete(g.statics, old.Instance)
	}
	if c.Member == nil {
		if old != nil {
			g.hold(old, nil)
		}
		delete(g.members, c.ID)
		return SetMember{c.ID, old}
	}
	// The assignment stays, unless the change brings one: that takes an end back.
	m := *c.Member
	if old != nil && m.State == 0 {
		m = *m.with(old.current())
	} else if m.State == 0 {
		m = *m.with(Current{State: Settled})
	}
	g.hold(old, &m)
	g.members[c.ID] = &m
	if m.Instance != "" {
		g.statics[m.Instance] = c.ID
	}
	return SetMember{c.ID, old}
}

func (c SetCurrent) apply(g *Group) Change {
	m := g.members[c.ID]
	if m == nil && c.Current == nil {
		return SetMember{c.ID, nil}
	}
	if m == nil {
		// Compaction may leave a member's assignment before the rest of it.
		n := (&Member{ID: c.ID}).with(*c.Current)
		g.hold(nil, n)
		g.members[c.ID] = n
		return SetMember{c.ID, nil}
	}
	old := m.current()
	next := Current{State: Settled}
	if c.Current != nil {
		next = *c.Current
	}
	n := m.with(next)
	g.hold(m, n)
	g.members[c.ID] = n
	return SetCurrent{c.ID, &old}
}

// hold moves the partitions that a member holds from what it was to what it is.
func (g *Group) hold(was, is *Member) {
	if was != nil {
		for _, set := range []Partitions{was.Assigned, was.Revoking} {
			for id, ps := range set {
				for _, p := range ps {
					delete(g.holders, slot{id, p})
				}
			}
		}
	}
	if is != nil {
		for _, set := range []Partitions{is.Assigned, is.Revoking} {
			for id, ps := range set {
				for _, p := range ps {
					g.holders[slot{id, p}] = is.ID
				}
			}
		}
	}
}

// Replay applies a change that was stored.
func (g *Group) Replay(c Change) { c.apply(g) }

// Undo takes back the changes of a command that could not be stored.
func (g *Group) Undo(fx Effects) {
	for i := len(fx.undo) - 1; i >= 0; i-- {
		fx.undo[i].apply(g)
	}
	g.seen = 0 // what the topics mean for the group is to be looked at again
	for _, c := range fx.clocks {
		g.sessions[c.id] = c.session
		g.wakeBy(c.session)
		if !c.deadline.IsZero() {
			g.deadline[c.id] = c.deadline
			g.wakeBy(c.deadline)
		}
	}
	for id := range g.sessions {
		if g.members[id] == nil {
			delete(g.sessions, id)
			delete(g.deadline, id)
		}
	}
}
