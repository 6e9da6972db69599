package codes

import "github.com/daybook-mq/daybook/internal/core/groups/refusal"

// byReason is what each reason of a group is on the wire. It is exhaustive: a test
// walks the reasons.
var byReason = map[refusal.Reason]Code{
	refusal.None:                     None,
	refusal.UnknownMember:            UnknownMemberID,
	refusal.IllegalGeneration:        IllegalGeneration,
	refusal.RebalanceInProgress:      RebalanceInProgress,
	refusal.MemberIDRequired:         MemberIDRequired,
	refusal.InconsistentProtocol:     InconsistentGroupProtocol,
	refusal.FencedInstance:           FencedInstanceID,
	refusal.UnreleasedInstance:       UnreleasedInstanceID,
	refusal.InvalidSessionTimeout:    InvalidSessionTimeout,
	refusal.InvalidGroupID:           InvalidGroupID,
	refusal.GroupMaxSizeReached:      GroupMaxSizeReached,
	refusal.GroupNotFound:            GroupIDNotFound,
	refusal.NonEmptyGroup:            NonEmptyGroup,
	refusal.SubscribedToTopic:        GroupSubscribedToTopic,
	refusal.OffsetMetadataTooLarge:   OffsetMetadataTooLarge,
	refusal.UnknownTopicOrPartition:  UnknownTopicOrPartition,
	refusal.UnknownTopicID:           UnknownTopicID,
	refusal.UnstableOffsetCommit:     UnstableOffsetCommit,
	refusal.StaleMemberEpoch:         StaleMemberEpoch,
	refusal.FencedMemberEpoch:        FencedMemberEpoch,
	refusal.UnsupportedAssignor:      UnsupportedAssignor,
	refusal.InvalidRegularExpression: InvalidRegularExpression,
	refusal.InvalidRequest:           InvalidRequest,
	refusal.UnsupportedVersion:       UnsupportedVersion,
	refusal.CoordinatorNotAvailable:  CoordinatorNotAvailable,
	refusal.CoordinatorLoading:       CoordinatorLoadInProgress,
	refusal.InvalidCommitSize:        InvalidCommitOffsetSize,
}

// ForReason is the code of a group's reason.
func ForReason(r refusal.Reason) Code {
	if c, ok := byReason[r]; ok {
		return c
	}
	return UnknownServerError
}

// ReasonText is the error_message field for a reason; nil for none.
func ReasonText(r refusal.Reason) *string {
	if r == refusal.None {
		return nil
	}
	s := r.Error()
	return &s
}

// GroupText is ReasonText for a request about several groups: it names the one that
// does not exist, since tools print the text alone.
func GroupText(group string, r refusal.Reason) *string {
	if r != refusal.GroupNotFound {
		return ReasonText(r)
	}
	s := "Group " + group + " not found: it has neither members nor offsets."
	return &s
}
