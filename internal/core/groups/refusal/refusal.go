// Package refusal lists the reasons for which a group or its offset store
// declines a request. Each front maps the reasons to its wire's codes in one
// place; the names follow Kafka's error names, which say what a client does next.
package refusal

// Reason is why a request was declined; None means that it was not. It is an
// error, so that it can be returned where an error is due.
type Reason uint8

// The reasons.
const (
	None                     Reason = iota
	UnknownMember                   // the member is not in the group: join anew
	IllegalGeneration               // the generation is over: rejoin
	RebalanceInProgress             // the group is rebalancing: rejoin
	MemberIDRequired                // join again with the id that was given (KIP-394)
	InconsistentProtocol            // protocol type or protocols do not fit the group's
	FencedInstance                  // another member has this instance id now (KIP-345)
	UnreleasedInstance              // the instance id is still in use (KIP-848)
	InvalidSessionTimeout           // outside group.min/max.session.timeout.ms
	InvalidGroupID                  // empty, where a name is needed
	GroupMaxSizeReached             // group.max.size
	GroupNotFound                   // no such group
	NonEmptyGroup                   // the group still has members
	SubscribedToTopic               // a member still consumes the topic
	OffsetMetadataTooLarge          // offset.metadata.max.bytes
	UnknownTopicOrPartition         // the catalogue does not have it
	UnknownTopicID                  // the catalogue does not have it
	UnstableOffsetCommit            // a transaction may still change the offset (KIP-447)
	StaleMemberEpoch                // the member epoch is not the current one (KIP-848)
	FencedMemberEpoch               // the member must rejoin with epoch 0 (KIP-848)
	UnsupportedAssignor             // no such server-side assignor
	InvalidRegularExpression        // a subscription pattern does not parse
	InvalidRequest                  // fields that contradict each other
	UnsupportedVersion              // the request's version cannot do this
	CoordinatorNotAvailable         // the change could not be stored, or the broker stops: retry
	CoordinatorLoading              // groups are being read back: retry
	InvalidCommitSize               // offsets and metadata that do not fit one batch
)

var texts = [...]string{
	None:                     "none",
	UnknownMember:            "the member is not in the group; join again without a member id",
	IllegalGeneration:        "the generation is not the group's current one; rejoin the group",
	RebalanceInProgress:      "the group is rebalancing; rejoin the group",
	MemberIDRequired:         "join again with the member id of this answer",
	InconsistentProtocol:     "the protocol type differs from the group's, or no protocol suits all members; use the members' common protocol or another group",
	FencedInstance:           "another member has joined with this group.instance.id; give each instance its own",
	UnreleasedInstance:       "the group.instance.id is still in use; wait for its member to leave or time out",
	InvalidSessionTimeout:    "the session timeout lies outside group.min.session.timeout.ms to group.max.session.timeout.ms; change session.timeout.ms",
	InvalidGroupID:           "the group id is empty; set group.id",
	GroupMaxSizeReached:      "the group has group.max.size members; raise it or use another group",
	GroupNotFound:            "there is no such group",
	NonEmptyGroup:            "the group has members; stop them first",
	SubscribedToTopic:        "members of the group are subscribed to the topic; unsubscribe first",
	OffsetMetadataTooLarge:   "the offset metadata exceeds offset.metadata.max.bytes; shorten it",
	UnknownTopicOrPartition:  "there is no such topic or partition",
	UnknownTopicID:           "there is no topic with this id; refresh the metadata",
	UnstableOffsetCommit:     "a transaction with this offset is not completed; retry",
	StaleMemberEpoch:         "the member epoch is not the current one; heartbeat and retry",
	FencedMemberEpoch:        "the member epoch is fenced; rejoin with epoch 0",
	UnsupportedAssignor:      "the broker does not have this assignor; use uniform or range",
	InvalidRegularExpression: "the subscription pattern is not a valid RE2 expression; correct it",
	InvalidRequest:           "the request's fields contradict each other",
	UnsupportedVersion:       "this version of the request cannot do it; use a newer client",
	CoordinatorNotAvailable:  "the coordinator cannot do this now; find it again and retry",
	CoordinatorLoading:       "the groups are being read back; retry",
	InvalidCommitSize:        "the offsets do not fit one batch; commit fewer partitions at once",
}

// Error says what the client can do.
func (r Reason) Error() string {
	if int(r) < len(texts) {
		return texts[r]
	}
	return "unknown reason"
}
