package swarm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
)

// An ErrorKind says what went wrong in a way that code can decide on: whether to try again, and how to exit.
type ErrorKind string

// The kinds. Those of a turn stand in its `turn_ended` event.
const (
	BadInput    ErrorKind = "bad_input"     // what the user wrote cannot be used
	NotFound    ErrorKind = "not_found"     // a program, file or run that is not there
	NotSignedIn ErrorKind = "not_signed_in" // a provider that wants a login or a key
	Exited      ErrorKind = "exited"        // the agent's program ended with another code than 0
	Crashed     ErrorKind = "crashed"       // it was ended by a signal that nobody here sent
	NoResult    ErrorKind = "no_result"     // it ended well but said nothing that could be its result
	Protocol    ErrorKind = "protocol"      // it said something that nobody can read
	Denied      ErrorKind = "denied"        // it asked for a tool that it may not use
	RateLimited ErrorKind = "rate_limited"  // it was told to come back later
	TimedOut    ErrorKind = "timed_out"     // it took longer than its task allows
	CutByCancel ErrorKind = "cancelled"     // somebody cancelled it
	CutToSpeak  ErrorKind = "interrupted"   // somebody cut it to say something else
	CutToReset  ErrorKind = "reset"         // somebody wants it begun anew
	Unexpected  ErrorKind = "unexpected"    // what it made is not what `expect` asks for
	BadPrompt   ErrorKind = "bad_prompt"    // its prompt could not be made: a selector that finds nothing, or too large
	WaitFailed  ErrorKind = "wait_failed"   // what it waited for failed, or can never come
	OverBudget  ErrorKind = "over_budget"   // no budget was left for it
	NeedsInput  ErrorKind = "needs_input"   // it asks something, and nobody can answer
	Stalled     ErrorKind = "stalled"       // a team made no progress, and nobody is there to decide
	Mismatch    ErrorKind = "mismatch"      // a replayed prompt is not the recorded one
	Stopped     ErrorKind = "stopped"       // this process ends or no longer owns the run; says nothing about the work
	Storage     ErrorKind = "storage"       // the disk or the log failed
	Other       ErrorKind = "error"         // an error of another kind
)

// An Error says where, what and what to do next.
type Error struct {
	Kind   ErrorKind
	File   string // where, when it is in a file
	Line   int    // from 1
	Column int    // from 1, in characters
	Msg    string // what is wrong, without a full stop
	Hint   string // what to write or do instead
	Err    error  // the cause, when its text is not part of Msg

	wrapped error // the cause that Errorf was given by %w: its text is part of Msg already
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
			if e.Column > 0 {
				fmt.Fprintf(&b, ":%d", e.Column)
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Text())
	return b.String()
}

// Text is the error without its place.
func (e *Error) Text() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause, so that errors.Is finds ErrFenced or a context's end behind any number of messages.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	return e.wrapped
}

// Errorf makes an Error of a kind. An error that is formatted with %w is its cause, as with fmt.Errorf.
//
// Msg holds the whole text, the cause's too: whoever redacts or replaces Msg redacts all that is printed.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Msg: err.Error(), wrapped: errors.Unwrap(err)}
}

// WithHint gives e a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// KindOf is the kind of the nearest Error in err's chain; other errors are Other, and those of contexts say so.
func KindOf(err error) ErrorKind {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && e.Kind != "":
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, context.Canceled):
		return CutByCancel
	}
	return Other
}

// HintOf is the hint of the nearest Error in err's chain, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// WithoutPath is why something could not be done to a file, without its name, which the message has already.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// WithoutURL is why a request failed, without its URL, in which a key may stand.
func WithoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// TimeoutHint says what to do about a turn that has taken too long.
const TimeoutHint = "give the task more with `timeout`, or see in `swarm logs` what it was busy with"

// CutError is the error of a turn whose context has ended.
func CutError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if _, ok := errors.AsType[*Error](cause); ok {
		return cause
	}
	switch kind := KindOf(cause); kind {
	case TimedOut:
		return &Error{Kind: kind, Msg: "it took longer than it may", Hint: TimeoutHint}
	case CutByCancel:
		return &Error{Kind: kind, Msg: "it was cancelled"}
	default:
		return &Error{Kind: kind, Msg: "it was cut short", Err: cause}
	}
}

// What a command exits with. Of several the first that applies of 130, 2, 3, 1.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitBadInput    = 2
	ExitBudget      = 3
	ExitInterrupted = 130
)

// ExitCode is what a command exits with after err.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	switch KindOf(err) {
	case Stopped:
		return ExitInterrupted
	case BadInput, NotFound, NotSignedIn:
		return ExitBadInput
	case OverBudget:
		return ExitBudget
	}
	return ExitFailed
}
