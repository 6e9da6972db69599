package codes

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/obs"
)

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
	model.ClassProducerMapping:   InvalidProducerIDMapping,
	model.ClassNotInTxn:          TransactionAbortable,
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
	keyInitProducer = 22
	keyAddPartsTxn  = 24
	keyAddOffsets   = 25
	keyEndTxn       = 26
	keyTxnOffsets   = 28
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
	// The coordinator knows that another producer took over; a partition knows
	// only that the epoch is old. Versions before KIP-588 are mapped back.
	{keyInitProducer, model.ClassFenced}: ProducerFenced,
	{keyAddPartsTxn, model.ClassFenced}:  ProducerFenced,
	{keyAddOffsets, model.ClassFenced}:   ProducerFenced,
	{keyEndTxn, model.ClassFenced}:       ProducerFenced,
	// What a producer retries against its coordinator.
	{keyInitProducer, model.ClassOverloaded}: CoordinatorNotAvailable,
	{keyInitProducer, model.ClassClosed}:     CoordinatorNotAvailable,
	{keyAddPartsTxn, model.ClassClosed}:      CoordinatorNotAvailable,
	{keyAddOffsets, model.ClassClosed}:       CoordinatorNotAvailable,
	{keyEndTxn, model.ClassClosed}:           CoordinatorNotAvailable,
	{keyTxnOffsets, model.ClassClosed}:       CoordinatorNotAvailable,
	{keyInitProducer, model.ClassDiskFull}:   CoordinatorNotAvailable,
	{keyAddPartsTxn, model.ClassDiskFull}:    CoordinatorNotAvailable,
	{keyAddOffsets, model.ClassDiskFull}:     CoordinatorNotAvailable,
	{keyEndTxn, model.ClassDiskFull}:         CoordinatorNotAvailable,
	{keyTxnOffsets, model.ClassDiskFull}:     CoordinatorNotAvailable,
}

// maxCounted bounds the codes that are counted by themselves.
const maxCounted = 256

// answered counts what For answered in this process; code c is at c+1, since
// UNKNOWN_SERVER_ERROR is -1.
var answered [maxCounted]obs.Counter

// EachAnswered calls f for each code that For has answered, with how often.
func EachAnswered(f func(Code, int64)) {
	for i := range answered {
		if n := answered[i].Load(); n > 0 {
			f(Code(i-1), n)
		}
	}
}

// For is the code of err in an answer to a request of the given API key; None
// for nil.
func For(key int16, err error) Code {
	if err == nil {
		return None
	}
	code := codeOf(key, err)
	answered[min(max(int(code)+1, 0), maxCounted-1)].Inc()
	return code
}

func codeOf(key int16, err error) Code {
	if c, ok := errors.AsType[Coded](err); ok {
		return c.Code()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return RequestTimedOut
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
	var s string
	if c, ok := errors.AsType[Coded](err); ok {
		s = c.ClientText()
	} else {
		s = model.ClientText(err)
	}
	return &s
}

// Coded is an error that knows its code. Fronts use it where the protocol has an
// error that core has no class for.
type Coded interface {
	error
	Code() Code
	ClientText() string
}

type codedError struct {
	code Code
	text string
}

// Errorf makes an error with a code and the text for the client.
func Errorf(code Code, format string, args ...any) error {
	return &codedError{code, fmt.Sprintf(format, args...)}
}

func (e *codedError) Error() string      { return e.text }
func (e *codedError) Code() Code         { return e.code }
func (e *codedError) ClientText() string { return e.text }
