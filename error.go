package swarm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"
)

// An ErrorKind is the class of an error, for code to decide on: whether to retry, and which exit
// code to use.
type ErrorKind string

// The kinds of errors. The kind of a turn's error is stored in its `turn_ended` event.
const (
	BadInput    ErrorKind = "bad_input"     // the user's input cannot be used
	NotFound    ErrorKind = "not_found"     // a program, file or run does not exist
	NotSignedIn ErrorKind = "not_signed_in" // the provider requires a login or a key
	Exited      ErrorKind = "exited"        // the agent's program exited with a code other than 0
	Crashed     ErrorKind = "crashed"       // a signal that the runtime did not send ended the program
	NoResult    ErrorKind = "no_result"     // the program succeeded but produced no result
	Protocol    ErrorKind = "protocol"      // the program or server sent something that breaks its protocol
	Denied      ErrorKind = "denied"        // the agent used a tool without permission
	Unconfirmed ErrorKind = "unconfirmed"   // a person has to confirm first what a file would do
	Unreachable ErrorKind = "unreachable"   // no server is there: it is away, or elsewhere
	RateLimited ErrorKind = "rate_limited"  // the provider's rate limit was hit: retry later
	TimedOut    ErrorKind = "timed_out"     // the turn took longer than its task allows
	CutByCancel ErrorKind = "cancelled"     // a person cancelled it
	CutToSpeak  ErrorKind = "interrupted"   // a person interrupted it to say something else
	CutToReset  ErrorKind = "reset"         // a person reset the agent: the turn starts anew
	Unexpected  ErrorKind = "unexpected"    // the result does not meet `expect`
	BadPrompt   ErrorKind = "bad_prompt"    // the prompt could not be made: a selector finds nothing, or it is too large
	WaitFailed  ErrorKind = "wait_failed"   // the output that it waited for failed, or can never come
	OverBudget  ErrorKind = "over_budget"   // the budget has no room for it
	OverShare   ErrorKind = "over_share"    // the budget of its own agent or task has no room for it
	NeedsInput  ErrorKind = "needs_input"   // it asks a question, and no person can answer
	Stalled     ErrorKind = "stalled"       // a team made no progress, and no person is there to decide
	Mismatch    ErrorKind = "mismatch"      // a replayed prompt differs from the recorded one
	Stopped     ErrorKind = "stopped"       // this process ends or no longer owns the run; says nothing about the work
	Storage     ErrorKind = "storage"       // the disk or the log failed
	Other       ErrorKind = "error"         // an error of another kind
)

// An Error says where the problem is, what is wrong and what to do about it.
type Error struct {
	Kind   ErrorKind
	File   string // the file that it is about, if any
	Line   int    // from 1
	Column int    // from 1, in characters
	Msg    string // what is wrong, without a full stop
	Hint   string // what to write or do instead
	Err    error  // the cause, when its text is not part of Msg
	// Until is, of RateLimited, when the provider says that its limit resets; zero = it does not say.
	Until time.Time

	wrapped error // the cause that Errorf got by %w: its text is already part of Msg
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

// Text returns the error without its position.
func (e *Error) Text() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause, so that errors.Is finds ErrFenced or a context's end behind any number
// of messages.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	return e.wrapped
}

// Errorf makes an Error of a kind. An error that is formatted with %w becomes its cause, as with
// fmt.Errorf.
//
// Msg holds the whole text, including the cause's. Redacting or replacing Msg therefore covers
// everything that is printed.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Msg: err.Error(), wrapped: errors.Unwrap(err)}
}

// WithHint sets the hint of e and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// KindOf returns the kind of the nearest Error in err's chain. The errors of contexts are TimedOut
// and CutByCancel, every other error is Other.
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

// HintOf returns the hint of the nearest Error in err's chain, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// WithoutPath returns the cause of a file error without the path, for messages that name the file
// already.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// WithoutURL returns the cause of a failed request without its URL, because a URL may hold a key.
func WithoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// TimeoutHint is the hint of every turn that timed out.
const TimeoutHint = "give the task more with `timeout`, or see in `swarm logs` what it was busy with"

// CutError returns the error of a turn whose context has ended. The cause of the context says why.
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

// The exit codes of commands. If several apply, the order is 130, 2, 3, 1.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitBadInput    = 2
	ExitBudget      = 3
	ExitInterrupted = 130
)

// ExitCode returns the exit code of a command that ended with err.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	switch KindOf(err) {
	case Stopped:
		return ExitInterrupted
	case BadInput, NotFound, NotSignedIn, Unconfirmed:
		return ExitBadInput
	case OverBudget:
		return ExitBudget
	}
	return ExitFailed
}
