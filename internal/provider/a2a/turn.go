package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/log"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A turn is the state of one turn. The goroutine of Turn owns it; only taskKnown is read by another
// one.
type turn struct {
	*remote
	conn       *connection
	request    provider.Request
	live       func(swarm.Delta)
	redactor   *secret.Redactor
	textStream *secret.Stream

	task, context string // the remote ids, as soon as they are known
	taskKnown     atomic.Bool
	state         wire.TaskState
	statusText    string                      // the text of the state
	texts         map[string]*strings.Builder // by artifact
	order         []string                    // of artifacts, as they came
	size          int                         // of all that is kept
	moves         int                         // changes of conversation
	heard         bool                        // the remote has begun to work, so the turn is not free
	keptNames     []string                    // names of the artifacts that it has stored
}

var errSilent = errors.New("the server said nothing for too long")

// run sends the message and reads the answer. Its requests outlive ctx for a moment: a stream that
// is just beginning first names its task, and without that name the task could not be cancelled.
func (t *turn) run(ctx context.Context) (err error) {
	if t.conn, err = t.connect(ctx); err != nil {
		return err
	}
	quiet := log.AttachLogger(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	asking, stop := context.WithCancelCause(quiet)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		if t.conn.streams && !t.taskKnown.Load() { // the stream's first event names the task
			time.AfterFunc(provider.CancelTime/2, func() { stop(context.Cause(ctx)) })
			return
		}
		stop(context.Cause(ctx))
	})()
	alarm := time.AfterFunc(provider.Silence, func() { stop(errSilent) })
	defer alarm.Stop()
	asking = context.WithValue(asking, aliveKey{}, func() { alarm.Reset(provider.Silence) })
	if err := t.sendMessage(ctx, asking); err != nil {
		return err
	}
	if err := t.followTask(ctx, asking); err != nil {
		return err
	}
	return t.checkEnd(ctx)
}

// sendMessage sends the message and reads the first answer. If the session no longer exists, it
// begins a new one with the whole prompt.
func (t *turn) sendMessage(ctx, asking context.Context) error {
	text, session := t.request.Prompt, url.Values{}
	if t.request.Session != "" {
		var err error
		if session, err = url.ParseQuery(t.request.Session); err == nil {
			text = t.request.Fresh
		}
	}
	m := t.message(text, session.Get("context"), session.Get("task"))
	err := t.retry(ctx, asking, func() error { return t.readEvents(ctx, t.startMessage(asking, m)) })
	if session.Get("context") != "" && t.task == "" && isSessionGone(err) {
		m = t.message(t.request.Prompt, "", "")
		err = t.retry(ctx, asking, func() error { return t.readEvents(ctx, t.startMessage(asking, m)) })
	}
	return err
}

// message makes the message. Its id is an idempotency key made from the turn, so a turn that is
// done again after a crash sends the same message.
func (t *turn) message(text, conversation, task string) *wire.Message {
	sum := sha256.Sum256([]byte(string(t.request.Run) + "\x00" + string(t.request.Turn) + "\x00" + conversation + "\x00" + task))
	return &wire.Message{
		ID:        hex.EncodeToString(sum[:16]),
		Role:      wire.MessageRoleUser,
		ContextID: conversation,
		TaskID:    wire.TaskID(task),
		Parts:     wire.ContentParts{wire.NewTextPart(text)},
	}
}

// isSessionGone says whether an error means that the conversation no longer exists, or has ended.
func isSessionGone(err error) bool {
	return errors.Is(err, wire.ErrTaskNotFound) || errors.Is(err, wire.ErrInvalidParams) ||
		errors.Is(err, wire.ErrUnsupportedOperation)
}

// startMessage sends a message. An agent that does not stream returns at once with its task, which
// is then polled, and can be cancelled while it works.
func (t *turn) startMessage(ctx context.Context, m *wire.Message) iter.Seq2[wire.Event, error] {
	if t.conn.streams {
		return t.conn.SendStreamingMessage(ctx, nil, &wire.SendMessageRequest{Message: m})
	}
	return func(yield func(wire.Event, error) bool) {
		got, err := t.conn.SendMessage(
			ctx, nil,
			&wire.SendMessageRequest{Message: m, Config: &wire.SendMessageConfig{ReturnImmediately: true}})
		yield(got, err)
	}
}

// retry repeats a request until it succeeds, at the pace of all turns of the provider. Once the
// task is known, the message is not sent again: nil is returned and followTask reads the rest. A
// server that was there and is gone may be restarting.
func (t *turn) retry(ctx, asking context.Context, do func() error) error {
	begun, reached := false, false
	say := func(text string) { t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: t.redactor.String(text)}) }
	err := t.pace.Ask(ctx, tries, firstWait, say, func() error {
		err := libraryError(asking, do())
		f, ok := errors.AsType[*provider.Failure](err)
		switch {
		case !ok:
		case t.task != "" || asking.Err() != nil:
			f.Again, begun = false, ctx.Err() == nil && asking.Err() == nil
		case f.Nobody && reached:
			f.Again = true
		default:
			reached = f.Again
		}
		return err
	})
	if begun {
		return nil // followTask reads the rest
	}
	return err
}

// libraryError is unwrapError for what the library returns. The protocol's own errors stay as they
// are.
func libraryError(ctx context.Context, err error) error {
	var theirs *wire.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		return swarm.Errorf(swarm.NoResult, "%w", errSilent)
	case errors.As(err, &theirs):
		return theirs
	}
	return unwrapError(ctx, err)
}

// isSettled says whether the remote does nothing more by itself in a state.
func isSettled(s wire.TaskState) bool {
	return s.Terminal() || s == wire.TaskStateInputRequired || s == wire.TaskStateAuthRequired
}

// followTask reads a task to its end, even if connections break: a server that was restarted still
// has the task.
func (t *turn) followTask(ctx, asking context.Context) error {
	for failed, wait := 0, pollWait; t.task != "" && !isSettled(t.state); {
		if err := provider.Sleep(ctx, wait); err != nil {
			return err
		}
		before := t.size
		got, err := t.conn.GetTask(asking, nil, &wire.GetTaskRequest{ID: wire.TaskID(t.task)})
		if err == nil {
			err = t.handleEvent(got)
		}
		if err == nil && !isSettled(t.state) && t.conn.streams {
			err = t.readEvents(
				ctx, t.conn.SubscribeToTask(asking, nil, &wire.SubscribeToTaskRequest{ID: wire.TaskID(t.task)}))
			// Servers do not stream a task that has ended, and some do not even find it. This one may
			// have ended since GetTask. The next GetTask returns how.
			if errors.Is(err, wire.ErrUnsupportedOperation) || errors.Is(err, wire.ErrTaskNotFound) {
				err = nil
			}
		}
		if err = libraryError(asking, err); ctx.Err() != nil || asking.Err() != nil {
			return err
		}
		f, known := errors.AsType[*provider.Failure](err)
		switch {
		case err == nil:
			failed, wait = 0, min(2*wait, 3*time.Second)
		case t.size > before:
			failed, wait = 0, firstWait
		// Also if no server answers: it may be restarting.
		case known && f.Err.Kind != swarm.NotSignedIn && failed < tries:
			failed++
			wait = provider.Backoff(firstWait, failed)
			t.live(swarm.Delta{
				Kind: swarm.DeltaStderr,
				Text: t.redactor.String(f.Err.Msg + "; coming back to the task\n"),
			})
		default:
			return err
		}
	}
	return nil
}

// readEvents reads a stream until the task is settled. Not every server ends the stream then.
func (t *turn) readEvents(ctx context.Context, events iter.Seq2[wire.Event, error]) error {
	for event, err := range events {
		if err == nil {
			err = t.handleEvent(event)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if isSettled(t.state) {
			break
		}
	}
	return nil
}

// cancelTask cancels the remote task of a turn that was cut or has failed. The request is sent at
// once; only a moment is spent waiting for its answer.
func (t *turn) cancelTask() {
	if t.task == "" || t.state.Terminal() || t.conn == nil {
		return
	}
	done := make(chan struct{})
	t.state = wire.TaskStateCanceled
	t.cancelling.Go(func() {
		defer close(done)
		ctx, stop := context.WithTimeout(
			log.AttachLogger(context.Background(), slog.New(slog.DiscardHandler)), cancelTime)
		defer stop()
		_, _ = t.conn.CancelTask(
			ctx, nil, &wire.CancelTaskRequest{ID: wire.TaskID(t.task)}) // an agent that disobeys is no longer read
	})
	select {
	case <-done:
	case <-time.After(provider.CancelTime):
	}
}

// session encodes what a later turn continues: the conversation, and the task if it waits for
// input.
func (t *turn) session() string {
	if t.context == "" {
		return ""
	}
	s := url.Values{"context": {t.context}}
	if t.state == wire.TaskStateInputRequired {
		s.Set("task", t.task)
	}
	return s.Encode()
}

// checkEnd returns the error of a turn whose task has ended, or nil for a good one.
func (t *turn) checkEnd(ctx context.Context) error {
	switch t.state {
	case wire.TaskStateFailed:
		return swarm.Errorf(swarm.NoResult, "the remote agent failed%s", excerpt.Said(t.statusText)).
			WithHint(provider.TryAgain)
	case wire.TaskStateRejected:
		return swarm.Errorf(swarm.NoResult, "the remote agent refused it%s", excerpt.Said(t.statusText)).
			WithHint("ask for it in other words, or ask another agent")
	case wire.TaskStateCanceled:
		return swarm.Errorf(
			swarm.NoResult, "the remote agent says that it was cancelled, but swarm has not cancelled it%s",
			excerpt.Said(t.statusText))
	case wire.TaskStateAuthRequired:
		return swarm.Errorf(swarm.NotSignedIn, "the remote agent wants somebody to sign in%s", excerpt.Said(t.statusText)).
			WithHint("do so where it says, then try again")
	case wire.TaskStateInputRequired:
		return t.askPerson(ctx)
	}
	if strings.TrimSpace(t.output()) == "" {
		return swarm.Errorf(swarm.NoResult, "the remote agent ended its task and %w", provider.ErrSaidNothing).
			WithHint("ask it for an answer in words")
	}
	return nil
}

// askPerson passes on the remote agent's question. In a team a person gets it in the agent's name,
// and the answer is in the agent's next turn. Without a next turn, this turn fails.
func (t *turn) askPerson(ctx context.Context) error {
	asked := t.statusText
	if asked == "" {
		asked = t.output()
	}
	if asked = strings.TrimSpace(asked); asked == "" {
		asked = "it does not say what"
	}
	asked = excerpt.Head(asked, 7<<10) // fits into one message
	if t.request.Call == nil {
		return swarm.Errorf(swarm.NeedsInput, "the remote agent asks something%s", excerpt.Said(asked)).
			WithHint("say it in the prompt, or put the agent into a team, where a person can answer")
	}
	args := swarm.Encode(map[string]string{"help_description": t.redactor.String(asked)})
	t.live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: "question", Name: "request_help", Input: args}})
	answer, err := t.request.Call(ctx, "request_help", args)
	t.live(swarm.Delta{
		Kind: swarm.DeltaToolDone,
		Tool: &swarm.ToolUse{ID: "question", Name: "request_help", Output: answer, Failed: err != nil},
	})
	if err != nil {
		return err
	}
	if strings.TrimSpace(t.output()) == "" {
		return t.addText("question", asked, false)
	}
	return nil
}

// cleanError makes any error an error of ours, without keys.
func (t *turn) cleanError(err error) error {
	var theirs *wire.Error
	var e *swarm.Error
	switch {
	case errors.As(err, &theirs):
		e = t.protocolError(theirs)
	case !errors.As(err, &e):
		e = swarm.Errorf(swarm.NoResult, "the answer breaks off: %w", err)
	}
	e.Msg, e.Hint = t.redactor.String(e.Msg), t.redactor.String(e.Hint)
	return e
}

// protocolError explains one of the protocol's own errors.
func (t *turn) protocolError(err *wire.Error) *swarm.Error {
	switch {
	case errors.Is(err, wire.ErrUnauthenticated), errors.Is(err, wire.ErrUnauthorized):
		return swarm.Errorf(swarm.NotSignedIn, "the remote agent does not let us in%s", excerpt.Said(err.Error())).
			WithHint("%s", t.signInHint())
	case errors.Is(err, wire.ErrInvalidParams),
		errors.Is(err, wire.ErrUnsupportedContentType),
		errors.Is(err, wire.ErrInvalidRequest):
		return swarm.Errorf(swarm.BadInput, "the remote agent does not take the message%s", excerpt.Said(err.Error()))
	case errors.Is(err, wire.ErrVersionNotSupported),
		errors.Is(err, wire.ErrMethodNotFound),
		errors.Is(err, wire.ErrParseError):
		return swarm.Errorf(swarm.Protocol, "the remote agent does not speak A2A as we do%s", excerpt.Said(err.Error())).
			WithHint("swarm speaks A2A %s", wire.Version)
	}
	return swarm.Errorf(swarm.NoResult, "the remote agent failed%s", excerpt.Said(err.Error())).
		WithHint(provider.TryAgain)
}
