package codes

import "github.com/daybook-mq/daybook/internal/model"

// byClass is what each class is on the wire, unless byKey says otherwise. It is
// exhaustive: a test walks the classes.
var byClass = map[model.Class]Code{
	model.ClassInternal:          UnknownServerError,
	model.ClassInvalid:           InvalidRequest,
	model.ClassNotFound:          UnknownTopicOrPartition,
	model.ClassExists:            TopicAlreadyExists,
	model.ClassOutOfRange:        OffsetOutOfRange,
	model.ClassTooLarge:          MessageTooLarge,
	model.ClassInvalidRecord:     InvalidRecord,
	model.ClassCorrupt:           CorruptMessage,
	model.ClassFenced:            InvalidProducerEpoch,
	model.ClassOutOfOrder:        OutOfOrderSequenceNumber,
	model.ClassUnknownProducer:   UnknownProducerID,
	model.ClassDuplicateSequence: DuplicateSequenceNumber,
	model.ClassTxnState:          InvalidTxnState,
	model.ClassConcurrentTxn:     ConcurrentTransactions,
	model.ClassOverloaded:        ThrottlingQuotaExceeded,
	model.ClassDiskFull:          KafkaStorageError,
	model.ClassStorage:           KafkaStorageError,
	model.ClassClosed:            NotLeaderForPartition, // clients look for the broker again and retry
	model.ClassTimeout:           RequestTimedOut,
	model.ClassUnauthorized:      ClusterAuthorizationFailed,
	model.ClassPolicy:            PolicyViolation,
	model.ClassUnsupported:       UnsupportedVersion,
}

// API keys that byKey names.
const (
	keyProduce      = 0
	keyFetch        = 1
	keyListOffsets  = 2
	keyCreateTopics = 19
	keyDescribeConf = 32
	keyAlterConfigs = 33
	keyCreateParts  = 37
	keyIncAlterConf = 44
)

type keyClass struct {
	key   int16
	class model.Class
}

// byKey holds the exceptions, with the reason for each.
var byKey = map[keyClass]Code{
	// Nothing was appended and a retry may succeed: every client knows this one
	// as such for produce.
	{keyProduce, model.ClassOverloaded}:   NotEnoughReplicas,
	{keyProduce, model.ClassUnauthorized}: TopicAuthorizationFailed,
	// What is damaged here is the disk's copy, not the client's message.
	{keyFetch, model.ClassCorrupt}:            KafkaStorageError,
	{keyFetch, model.ClassUnauthorized}:       TopicAuthorizationFailed,
	{keyListOffsets, model.ClassCorrupt}:      KafkaStorageError,
	{keyListOffsets, model.ClassUnauthorized}: TopicAuthorizationFailed,
	// Names and counts are checked before; what is left is a setting.
	{keyCreateTopics, model.ClassInvalid}: InvalidConfig,
	{keyAlterConfigs, model.ClassInvalid}: InvalidConfig,
	{keyIncAlterConf, model.ClassInvalid}: InvalidConfig,
	{keyDescribeConf, model.ClassInvalid}: InvalidRequest,
	{keyCreateParts, model.ClassInvalid}:  InvalidPartitions,
}

// For is the code of err in an answer to a request of the given API key; None
// for nil.
func For(key int16, err error) Code {
	if err == nil {
		return None
	}
	class := model.ClassOf(err)
	if c, ok := byKey[keyClass{key, class}]; ok {
		return c
	}
	return byClass[class]
}

// Text is the error_message field for err: what the client may know and what to
// do next; nil for nil.
func Text(err error) *string {
	if err == nil {
		return nil
	}
	s := model.ClientText(err)
	return &s
}
