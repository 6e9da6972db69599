// Package share serves the Kafka requests of share groups (KIP-932): membership,
// fetching and settling, and their offsets; one numbered file for each API key.
// It keeps share sessions; everything else is core's.
package share

import (
	"errors"
	"time"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/sharegroups"
	"github.com/daybook-mq/daybook/internal/core/topics"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
	"github.com/daybook-mq/daybook/internal/model"
)

// fetchMaxBytes bounds the records of one answer.
const fetchMaxBytes = 55 << 20

// Handlers are the requests of this package.
type Handlers struct {
	Groups *sharegroups.Coordinator
	Topics *topics.Catalogue
	Now    func() time.Time
	// Host is the client's address as tools show it.
	Host func(*conn.Conn) string

	sessions *sessions
}

// New makes the handlers; slots bounds the share sessions.
func New(h Handlers, slots int) *Handlers {
	h.sessions = newSessions(slots)
	return &h
}

// APIs are the rows of the version table.
func (h *Handlers) APIs() []conn.API {
	return []conn.API{
		conn.Handle(1, 1, h.heartbeat),
		conn.Handle(1, 1, h.describe),
		conn.Handle(1, 2, h.fetch),
		conn.Handle(1, 2, h.acknowledge),
		conn.Handle(0, 1, h.describeOffsets),
		conn.Handle(0, 0, h.alterOffsets),
		conn.Handle(0, 0, h.deleteOffsets),
	}
}

// code gives the code and the text of a refusal of the coordinator.
func code(key int16, err error) (codes.Code, *string) {
	c := codes.None
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, sharegroups.ErrUnknownMember):
		c = codes.UnknownMemberID
	case errors.Is(err, sharegroups.ErrFencedEpoch):
		c = codes.FencedMemberEpoch
	case errors.Is(err, sharegroups.ErrOtherKind), errors.Is(err, sharegroups.ErrNoGroup):
		c = codes.GroupIDNotFound
	case errors.Is(err, sharegroups.ErrGroupFull):
		c = codes.GroupMaxSizeReached
	case errors.Is(err, sharegroups.ErrNotEmpty):
		c = codes.NonEmptyGroup
	case errors.Is(err, ledger.ErrNotHeld):
		c = codes.InvalidRecordState
		text := "the record is not acquired by this member any more; its lock ended, or it was settled"
		return c, &text
	default:
		c = codes.For(key, err)
	}
	return c, codes.Text(err)
}

// Code is what DeleteGroups answers for a share group that was not deleted.
func Code(err error) (codes.Code, *string) { return code(keyDeleteGroups, err) }

const keyDeleteGroups = 42

// topic finds a topic by its id.
func (h *Handlers) topic(id model.TopicID) (*topics.Topic, error) {
	if t, ok := h.Topics.ByID(id); ok {
		return t, nil
	}
	return nil, codes.Errorf(codes.UnknownTopicID, "topic id %v does not exist; refresh the metadata", id)
}
