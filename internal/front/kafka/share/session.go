package share

import (
	"math"
	"slices"
	"sync"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// Session epochs with a meaning of their own (KIP-932).
const (
	epochInitial int32 = 0
	epochFinal   int32 = -1
)

// sessions are the share sessions of the server: which partitions a member
// fetches from. A member has one; it ends with its connection.
type sessions struct {
	slots int

	mu   sync.Mutex
	byID map[sessionID]*session
}

type sessionID struct{ group, member string }

// session is one member's. It is used by one request at a time, since a
// connection's requests are.
type session struct {
	id    sessionID
	epoch int32 // that the next request must have
	parts []model.PartitionID
	first int // where the next fetch begins, so that all partitions get their turn
}

func newSessions(slots int) *sessions {
	return &sessions{slots: slots, byID: map[sessionID]*session{}}
}

// use finds the session of a request and moves its epoch on. ended is called when
// the session's connection ends before it does.
func (ss *sessions) use(c *conn.Conn, id sessionID, epoch int32, ended func(sessionID)) (*session, codes.Code) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	if epoch == epochInitial {
		if s == nil && len(ss.byID) >= ss.slots {
			return nil, codes.ShareSessionLimitReached
		}
		s = &session{id: id, epoch: 1}
		ss.byID[id] = s
		c.OnClose(id, func() {
			if ss.drop(s) {
				ended(id)
			}
		})
		return s, codes.None
	}
	switch {
	case s == nil:
		return nil, codes.ShareSessionNotFound
	case epoch == epochFinal:
		return s, codes.None
	case epoch != s.epoch:
		return nil, codes.InvalidShareSessionEpoch
	}
	if s.epoch++; s.epoch == math.MaxInt32 {
		s.epoch = 1
	}
	return s, codes.None
}

// drop forgets a session; false if it was gone or replaced already.
func (ss *sessions) drop(s *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return false
	}
	delete(ss.byID, s.id)
	return true
}

func (s *session) add(p model.PartitionID) {
	if !slices.Contains(s.parts, p) {
		s.parts = append(s.parts, p)
	}
}

func (s *session) forget(p model.PartitionID) {
	s.parts = slices.DeleteFunc(s.parts, func(q model.PartitionID) bool { return p == q })
}

// turn lists the session's partitions, beginning with another one each time.
func (s *session) turn() []model.PartitionID {
	n := len(s.parts)
	if n == 0 {
		return nil
	}
	s.first = (s.first + 1) % n
	return append(slices.Clone(s.parts[s.first:]), s.parts[:s.first]...)
}
