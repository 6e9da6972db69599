// Package quota limits rates by user and client id, as Kafka's quotas do: which
// limit holds for whom (Table), and what everyone has used of it (Limiter). It
// keeps no limits for good: the catalogue does. It delays nobody: who asks is told
// how long a client is to wait.
package quota

import (
	"fmt"
	"maps"
	"math"
)

// Kind is what is limited.
type Kind uint8

// The kinds, with their unit per second.
const (
	Produce  Kind = iota // bytes of produce requests
	Fetch                // bytes of fetched records
	Request              // percent of one core's time in request handlers
	Mutation             // partitions created or deleted
	numKinds
)

// keys are the kinds' names in Kafka's protocol.
var keys = [numKinds]string{"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}

// String is the kind's name in Kafka's protocol.
func (k Kind) String() string { return keys[k] }

// KindOf finds a kind by its name in Kafka's protocol.
func KindOf(key string) (Kind, bool) {
	for k, name := range keys {
		if name == key {
			return Kind(k), true
		}
	}
	return 0, false
}

// Check tells whether v can be a limit of kind k.
func (k Kind) Check(v float64) error {
	switch {
	case math.IsNaN(v) || v <= 0 || v > math.MaxInt64:
		return fmt.Errorf("%s is %v; it must be above 0", k, v)
	case (k == Produce || k == Fetch) && v != math.Trunc(v):
		return fmt.Errorf("%s is %v; it must be a whole number of bytes", k, v)
	}
	return nil
}

// Name is one part of an entity: not there, the default of all that have no limit
// of their own, or one name.
type Name struct {
	Match Match
	Value string // of Exact
}

// Match says what a Name stands for.
type Match uint8

// The matches.
const (
	Absent Match = iota
	Default
	Exact
)

// Of is the name of one user or client.
func Of(v string) Name { return Name{Exact, v} }

// AnyOther is the default.
var AnyOther = Name{Match: Default}

// Entity is whom a limit is for. At least one part is there.
type Entity struct {
	User, ClientID Name
}

// Limits are an entity's, by kind, per second; 0 for none.
type Limits [numKinds]float64

// Table is every limit there is. It does not change once it is made.
type Table struct {
	limits map[Entity]Limits
}

// NewTable makes a table of a copy of limits.
func NewTable(limits map[Entity]Limits) *Table { return &Table{maps.Clone(limits)} }

// With is the table with one entity's limits changed; without any it is gone.
func (t *Table) With(e Entity, l Limits) *Table {
	out := &Table{maps.Clone(t.limits)}
	if out.limits == nil {
		out.limits = map[Entity]Limits{}
	}
	out.limits[e] = l
	if l == (Limits{}) {
		delete(out.limits, e)
	}
	return out
}

// Empty reports that nobody is limited.
func (t *Table) Empty() bool { return len(t.limits) == 0 }

// Of gives an entity's own limits.
func (t *Table) Of(e Entity) Limits { return t.limits[e] }

// All visits every entity.
func (t *Table) All(visit func(Entity, Limits)) {
	for e, l := range t.limits {
		visit(e, l)
	}
}

// find gives the limit of kind k for a client, by Kafka's order of precedence, and
// who shares it: a limit of a user is shared by all clients of that user, one of a
// client id by all users of it.
func (t *Table) find(k Kind, user, client string) (share Entity, limit float64, ok bool) {
	u, c := Of(user), Of(client)
	for _, try := range [...]struct{ entry, share Entity }{
		{Entity{u, c}, Entity{u, c}},
		{Entity{u, AnyOther}, Entity{u, c}},
		{Entity{User: u}, Entity{User: u}},
		{Entity{AnyOther, c}, Entity{u, c}},
		{Entity{AnyOther, AnyOther}, Entity{u, c}},
		{Entity{User: AnyOther}, Entity{User: u}},
		{Entity{ClientID: c}, Entity{ClientID: c}},
		{Entity{ClientID: AnyOther}, Entity{ClientID: c}},
	} {
		if l := t.limits[try.entry][k]; l > 0 {
			return try.share, l, true
		}
	}
	return Entity{}, 0, false
}
