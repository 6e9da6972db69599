// Package session keeps incremental fetch sessions (KIP-227): what each consumer
// asked for, in which order, and what it was told last, so that its requests and
// answers need to carry only what changed. It reads no partition and knows no wire
// format; a session that is lost costs its client one full request.
package session

import (
	"container/list"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/model"
)

// Epochs with a meaning of their own.
const (
	Initial int32 = 0  // a full request that opens a session
	Final   int32 = -1 // a full request that closes one
)

// maxPartitions bounds the partitions of all sessions together; above it, sessions
// are declined, which the protocol allows.
const maxPartitions = 500_000

// evictAfter is how long a session must have been idle before a new one may take
// its slot (min.incremental.fetch.session.eviction.ms).
const evictAfter = 2 * time.Minute

// Key names a partition as the client does: by topic id or, in old versions of
// the protocol, by name.
type Key struct {
	ID    model.TopicID
	Name  string
	Index int32
}

// Partition is one partition that a client fetches, and what it was told last.
type Partition struct {
	Key
	Offset           model.Offset
	MaxBytes         int32
	LeaderEpoch      int32 // as the client knows it, -1 for none
	LastFetchedEpoch int32 // -1 for none

	told struct{ highWatermark, logStart model.Offset }
}

// Outcome is what a fetch found for one partition.
type Outcome struct {
	HighWatermark, LogStart model.Offset
	HasRecords, HasError    bool
	Diverging               bool
}

// Request is what a fetch request says of its session.
type Request struct {
	ID, Epoch  int32
	ByID       bool // partitions are named by topic id
	Partitions []Partition
	Forgotten  []Key
}

// Cache holds the sessions of a server. It may be used from any goroutine.
type Cache struct {
	slots int
	now   func() time.Time

	mu         sync.Mutex
	sessions   map[int32]*session
	idle       list.List // of *session, least recently used first
	partitions int       // of all sessions
}

// session is one client's. It is used by one request at a time: busy is held from
// Begin to End.
type session struct {
	id   int32
	byID bool

	// under Cache.mu
	epoch int32 // that the next request must have
	used  time.Time
	busy  bool
	at    *list.Element
	size  int // partitions, as counted in Cache.partitions

	// of the request that holds it
	order list.List // of *Partition
	parts map[Key]*list.Element
}

// NewCache makes a cache of at most slots sessions.
func NewCache(slots int, now func() time.Time) *Cache {
	return &Cache{slots: slots, now: now, sessions: map[int32]*session{}}
}

// Len is the number of sessions.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Fetch is one request's use of its session, or of none.
type Fetch struct {
	ID         int32        // for the answer; 0 for none
	Partitions []*Partition // what to fetch, in order
	full       bool         // the answer holds every partition
	cache      *Cache
	session    *session
}

// Begin finds or opens the session of a request. End must follow unless code is
// an error: then the client has to start anew.
func (c *Cache) Begin(r Request) (f *Fetch, code codes.Code) {
	if r.Epoch == Initial || r.Epoch == Final {
		return c.full(r), codes.None
	}
	c.mu.Lock()
	s, ok := c.sessions[r.ID]
	switch {
	case !ok:
		c.mu.Unlock()
		return nil, codes.FetchSessionIDNotFound
	case s.byID != r.ByID:
		c.mu.Unlock()
		return nil, codes.FetchSessionTopicIDError
	case s.busy || s.epoch != r.Epoch:
		c.mu.Unlock()
		return nil, codes.InvalidFetchSessionEpoch
	}
	if !c.resizeLocked(s, s.size+len(r.Partitions)) {
		c.removeLocked(s)
		c.mu.Unlock()
		return nil, codes.FetchSessionIDNotFound
	}
	s.busy = true
	s.epoch = nextEpoch(s.epoch)
	s.used = c.now()
	c.idle.MoveToBack(s.at)
	c.mu.Unlock()

	s.update(r)
	f = &Fetch{ID: s.id, cache: c, session: s, Partitions: make([]*Partition, 0, s.order.Len())}
	for e := s.order.Front(); e != nil; e = e.Next() {
		f.Partitions = append(f.Partitions, e.Value.(*Partition))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resizeLocked(s, len(f.Partitions))
	if len(f.Partitions) == 0 {
		c.removeLocked(s)
		f.ID, f.session = 0, nil
	}
	return f, codes.None
}

// full serves a request that names all its partitions: it ends the session that
// it names, and opens one if it asks for that and there is a slot.
func (c *Cache) full(r Request) *Fetch {
	f := &Fetch{full: true, cache: c, Partitions: make([]*Partition, len(r.Partitions))}
	for i := range r.Partitions {
		f.Partitions[i] = &r.Partitions[i]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.sessions[r.ID]; ok && r.ID != 0 {
		c.removeLocked(s)
	}
	if r.Epoch == Final || len(r.Partitions) == 0 || !c.roomLocked() {
		return f
	}
	s := &session{
		id: c.newIDLocked(), byID: r.ByID, epoch: 1, used: c.now(), busy: true,
		parts: make(map[Key]*list.Element, len(r.Partitions)),
	}
	if !c.resizeLocked(s, len(r.Partitions)) {
		return f
	}
	for _, p := range f.Partitions {
		s.put(p)
	}
	s.at = c.idle.PushBack(s)
	c.sessions[s.id] = s
	f.ID, f.session = s.id, s
	return f
}

// roomLocked makes room for one more session, if it can.
func (c *Cache) roomLocked() bool {
	if len(c.sessions) < c.slots {
		return true
	}
	if e := c.idle.Front(); e != nil {
		if s := e.Value.(*session); !s.busy && c.now().Sub(s.used) >= evictAfter {
			c.removeLocked(s)
			return true
		}
	}
	return false
}

// resizeLocked counts the partitions of s as n; false when that is too many.
func (c *Cache) resizeLocked(s *session, n int) bool {
	total := c.partitions + n - s.size
	if n > s.size && total > maxPartitions {
		return false
	}
	c.partitions, s.size = total, n
	return true
}

func (c *Cache) removeLocked(s *session) {
	if c.sessions[s.id] == s {
		c.resizeLocked(s, 0)
		delete(c.sessions, s.id)
		c.idle.Remove(s.at)
	}
}

// newIDLocked draws an id that is positive and free. It is random, so that a
// client of an earlier run of the broker does not hit somebody else's session.
func (c *Cache) newIDLocked() int32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		id := int32(binary.BigEndian.Uint32(b[:]) & 0x7fffffff)
		if _, taken := c.sessions[id]; id > 0 && !taken {
			return id
		}
	}
}

func nextEpoch(e int32) int32 {
	if e == 1<<31-1 {
		return 1
	}
	return e + 1
}

// put adds p at the end, or changes what is asked of a partition that is there.
func (s *session) put(p *Partition) {
	if e, ok := s.parts[p.Key]; ok {
		old := e.Value.(*Partition)
		told := old.told
		*old = *p
		old.told = told
		return
	}
	p.told.highWatermark, p.told.logStart = -1, -1
	s.parts[p.Key] = s.order.PushBack(p)
}

// update applies what a request adds, changes and forgets.
func (s *session) update(r Request) {
	for i := range r.Partitions {
		s.put(&r.Partitions[i])
	}
	for _, k := range r.Forgotten {
		if e, ok := s.parts[k]; ok {
			s.order.Remove(e)
			delete(s.parts, k)
		}
	}
}

// Include decides whether the answer must hold p, and notes what it says.
func (f *Fetch) Include(p *Partition, o Outcome) bool {
	if f.session == nil {
		return true
	}
	changed := o.HasRecords || o.HasError || o.Diverging ||
		o.HighWatermark != p.told.highWatermark || o.LogStart != p.told.logStart
	p.told.highWatermark, p.told.logStart = o.HighWatermark, o.LogStart
	if o.HasError {
		// The client must hear when the error is over, even if nothing else changed.
		p.told.highWatermark, p.told.logStart = -1, -1
	}
	if o.HasRecords {
		// Who got something goes to the end of the line, so that a byte limit
		// does not starve the others.
		if e, ok := f.session.parts[p.Key]; ok {
			f.session.order.MoveToBack(e)
		}
	}
	return f.full || changed
}

// End gives the session back.
func (f *Fetch) End() {
	if f.session == nil {
		return
	}
	f.cache.mu.Lock()
	f.session.busy = false
	f.cache.mu.Unlock()
}
