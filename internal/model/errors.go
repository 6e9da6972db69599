package model

import (
	"errors"
	"strings"
)

// Class says what kind of failure an error is; each front maps classes to its
// own wire codes in one file.
type Class uint8

// The classes. A front that cannot tell classes apart on its wire may merge
// them; nothing else may.
const (
	ClassInternal          Class = iota // a bug or a broken invariant
	ClassInvalid                        // the request is malformed or out of range
	ClassNotFound                       // the named thing does not exist
	ClassExists                         // the named thing exists already
	ClassOutOfRange                     // an offset outside the log
	ClassTooLarge                       // a record, batch or request over its limit
	ClassInvalidRecord                  // a record that a topic's rules refuse
	ClassCorrupt                        // damaged bytes, from a client or on disk
	ClassFenced                         // an epoch, session or lease that is over
	ClassOutOfOrder                     // a producer sequence with a gap
	ClassUnknownProducer                // producer state that is not (or no longer) known
	ClassDuplicateSequence              // a sequence older than what is remembered
	ClassTxnState                       // the transaction is in another state
	ClassConcurrentTxn                  // the same transactional id is being completed
	ClassProducerMapping                // the transactional id belongs to another producer id
	ClassNotInTxn                       // the partition is not part of an open transaction
	ClassOverloaded                     // a limit is reached; retry later
	ClassDiskFull                       // no room for new data; retry when there is
	ClassStorage                        // the disk failed, the partition is quarantined
	ClassClosed                         // shutting down
	ClassTimeout                        // the time that the client gave is over
	ClassUnauthorized                   // the principal may not do this
	ClassPolicy                         // configuration forbids this
	ClassUnsupported                    // not offered, now or in this mode
)

// Error is how Daybook's packages report failure. Detail is for the client and
// says what to do next; Cause is for the log.
type Error struct {
	Class  Class
	Op     string // what was being done, e.g. "produce"
	Object string // to what, e.g. "orders-3"
	Detail string
	Cause  error
}

// Error joins operation, object, detail and cause.
func (e *Error) Error() string {
	parts := make([]string, 0, 4)
	for _, s := range []string{e.Op, e.Object, e.Detail} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.Cause != nil {
		parts = append(parts, e.Cause.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Err makes an error of a class with the text for the client.
func Err(c Class, detail string) *Error { return &Error{Class: c, Detail: detail} }

// ClassOf finds the class of err or of one of its causes; ClassInternal if none has one.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassInternal
}

// ClientText is what a client may be told of err: the details, never the causes.
func ClientText(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Detail != "" {
		return e.Detail
	}
	return "internal error; the broker's log has the cause"
}
