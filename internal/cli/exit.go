package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// The exit codes of every command.
const (
	ExitOK        = 0
	ExitFailure   = 1
	ExitUsage     = 2
	ExitInterrupt = 130
)

// UsageError is a command line that cannot be carried out as written.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...)}
}

// HintError is a failure with what to do about it.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }

// Unwrap gives the failure itself.
func (e *HintError) Unwrap() error { return e.Err }

// Hintf attaches a remedy to err; nil stays nil.
func Hintf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &HintError{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// ErrSilent is a failure that the command has already reported in full.
var ErrSilent = errors.New("failed")

// Report prints err for a person, with its remedy, and says how to exit.
// Interrupted says that the user stopped the command.
func Report(w io.Writer, command string, err error, interrupted bool) int {
	switch {
	case err == nil:
		return ExitOK
	case interrupted && errors.Is(err, context.Canceled):
		return ExitInterrupt
	case errors.Is(err, ErrSilent), errors.Is(err, syscall.EPIPE):
		// Whoever read our output has gone; there is nobody to tell.
		return ExitFailure
	}
	fmt.Fprintf(w, "daybook: %v\n", err)
	if usage, ok := errors.AsType[*UsageError](err); ok && usage != nil {
		fmt.Fprintf(w, "See `%s --help`.\n", command)
		return ExitUsage
	}
	if hint, ok := errors.AsType[*HintError](err); ok {
		fmt.Fprintf(w, "  %s\n", hint.Hint)
	}
	return ExitFailure
}
