package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// remedies say what to do about a broker's error code, where the code alone
// does not tell.
var remedies = map[error]string{
	kerr.UnknownTopicOrPartition:            "`daybook topic list` shows the topics there are; `daybook topic create NAME` makes one.",
	kerr.UnknownTopicID:                     "The topic was deleted or made anew meanwhile; run the command again.",
	kerr.TopicAlreadyExists:                 "Use --if-not-exists to accept that, or `daybook topic describe NAME` to look at it.",
	kerr.InvalidTopicException:              "A topic name is 1 to 249 of the letters a-z, A-Z, 0-9, '.', '_' and '-'.",
	kerr.InvalidReplicationFactor:           "One node keeps one replica: leave --replication-factor out.",
	kerr.InvalidPartitions:                  "Partitions can only be added: name a number above the present one.",
	kerr.InvalidConfig:                      "`daybook topic configs TOPIC` shows the keys and their values.",
	kerr.NonEmptyGroup:                      "Stop the group's members first; `daybook group describe GROUP` names them.",
	kerr.GroupIDNotFound:                    "`daybook group list` shows the groups there are.",
	kerr.GroupSubscribedToTopic:             "A member of the group reads that topic; stop it first.",
	kerr.TopicAuthorizationFailed:           "The user needs a right on that topic; see --sasl-user.",
	kerr.GroupAuthorizationFailed:           "The user needs a right on that group; see --sasl-user.",
	kerr.ClusterAuthorizationFailed:         "The user needs a right on the cluster; see --sasl-user.",
	kerr.SaslAuthenticationFailed:           "Check --sasl-user, --sasl-mechanism and DAYBOOK_SASL_PASSWORD.",
	kerr.UnsupportedVersion:                 "The broker is too old (or too new) for this command.",
	kerr.MessageTooLarge:                    "Raise the topic's max.message.bytes: `daybook topic alter TOPIC --set max.message.bytes=N`.",
	kerr.OffsetOutOfRange:                   "`daybook topic describe TOPIC` shows the first and the next offset of each partition.",
	kerr.UnknownMemberID:                    "The group has members; offsets can be changed only while it has none.",
	kerr.PolicyViolation:                    "The broker's configuration forbids it.",
	kerr.TransactionalIDNotFound:            "`daybook txn list` shows the transactional ids there are.",
	kerr.CoordinatorLoadInProgress:          "The broker is still loading its state; try again in a moment.",
	kerr.CoordinatorNotAvailable:            "The broker is still starting; try again in a moment.",
	kerr.KafkaStorageError:                  "The broker's disk failed; see its log and `daybook doctor`.",
	kerr.ThrottlingQuotaExceeded:            "A quota holds this user back; try again later, or see `daybook quota`.",
	kerr.InvalidRecord:                      "The topic's rules refuse this record; `daybook topic configs TOPIC` shows them.",
	kerr.InvalidRequiredAcks:                "Use --acks 0, 1 or all.",
	kerr.UnsupportedCompressionType:         "Use another --compression, or none.",
	kerr.InvalidProducerEpoch:               "Another producer took over.",
	kerr.NotLeaderForPartition:              "Leadership has moved; run the command again.",
	kerr.TransactionalIDAuthorizationFailed: "The user needs a right on that transactional id; see --sasl-user.",
}

// Refused explains why what was asked for did not happen: the broker's own
// words where it sent any, the error code, and the remedy. A nil err is nil.
func Refused(what string, err error, message string) error {
	if err == nil {
		return nil
	}
	code, ok := errors.AsType[*kerr.Error](err)
	if !ok {
		return Failed(what, err)
	}
	if message == "" {
		if e, ok := errors.AsType[*kadm.ErrAndMessage](err); ok {
			message = e.ErrMessage
		}
	}
	if message == "" {
		message = strings.TrimSuffix(code.Description, ".")
	}
	text := fmt.Errorf("%s: %s (%w)", what, message, &codeName{code})
	if remedy := remedies[code]; remedy != "" {
		return Hintf(text, "%s", remedy)
	}
	return text
}

// codeName prints a broker's error as its bare name; errors.Is still finds it.
type codeName struct{ err *kerr.Error }

func (c *codeName) Error() string { return c.err.Message }
func (c *codeName) Unwrap() error { return c.err }

// Failed explains an error of the connection or of the client.
func Failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if code, ok := errors.AsType[*kerr.Error](err); ok {
		return Refused(what, code, "")
	}
	if _, ok := errors.AsType[*HintError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*kadm.AuthError](err); ok {
		return Hintf(fmt.Errorf("%s: %w", what, err), "The user needs that right; see --sasl-user.")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Hintf(fmt.Errorf("%s: no answer in time", what), "Look at the broker's log, or wait longer with --timeout 60s.")
	}
	return fmt.Errorf("%s: %w", what, err)
}
