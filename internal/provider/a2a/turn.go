package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"swarm/internal/excerpt"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/log"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A turn is one turn on its way.
type turn struct {
	*remote
	conn    *connection
	request provider.Request
	live    func(swarm.Delta)
	hide    *secret.Redactor
	said    *secret.Stream

	task, context string // the remote's, as soon as they are known
	met           atomic.Bool
	state         wire.TaskState
	why           string                      // what it says to its state
	texts         map[string]*strings.Builder // by artifact
	order         []string                    // of artifacts, as they came
	size          int                         // of all that is kept
	moves         int                         // from one conversation to another
	heard         bool                        // somebody has begun to work
	beside        []string                    // what it has kept beside them, by name
}

var errSilent = errors.New("the server said nothing for too long")

// run has the message heard, and hears the answer. A request of its own outlives ctx for a moment, so that a task which has just begun
// can be cancelled.
func (t *turn) run(ctx context.Context) (err error) {
	if t.conn, err = t.connect(ctx); err != nil {
		return err
	}
	quiet := log.AttachLogger(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	asking, stop := context.WithCancelCause(quiet)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		if t.conn.streams && !t.met.Load() { // the first thing that it says is which task it is
			time.AfterFunc(provider.CancelTime/2, func() { stop(context.Cause(ctx)) })
			return
		}
		stop(context.Cause(ctx))
	})()
	alarm := time.AfterFunc(provider.Silence, func() { stop(errSilent) })
	defer alarm.Stop()
	asking = context.WithValue(asking, aliveKey{}, func() { alarm.Reset(provider.Silence) })
	if err := t.send(ctx, asking); err != nil {
		return err
	}
	if err := t.follow(ctx, asking); err != nil {
		return err
	}
	return t.judge(ctx)
}

// send has the message heard. A session that is not there any more is begun anew, with all that there is to say.
func (t *turn) send(ctx, asking context.Context) error {
	text, session := t.request.Prompt, url.Values{}
	if t.request.Session != "" {
		var err error
		if session, err = url.ParseQuery(t.request.Session); err == nil {
			text = t.request.Fresh
		}
	}
	m := t.message(text, session.Get("context"), session.Get("task"))
	err := t.persist(ctx, asking, func() error { return t.hear(ctx, t.ask(asking, m)) })
	if session.Get("context") != "" && t.task == "" && forgotten(err) {
		m = t.message(t.request.Prompt, "", "")
		err = t.persist(ctx, asking, func() error { return t.hear(ctx, t.ask(asking, m)) })
	}
	return err
}

// message is what the agent is told. Its id is made of the turn, so that a turn which is done again after a crash says the same.
func (t *turn) message(text, conversation, task string) *wire.Message {
	sum := sha256.Sum256([]byte(t.request.Run + "\x00" + t.request.Turn + "\x00" + conversation + "\x00" + task))
	return &wire.Message{ID: hex.EncodeToString(sum[:16]), Role: wire.MessageRoleUser, ContextID: conversation, TaskID: wire.TaskID(task),
		Parts: wire.ContentParts{wire.NewTextPart(text)}}
}

// forgotten says of an error that a conversation is not there any more, or has ended.
func forgotten(err error) bool {
	return errors.Is(err, wire.ErrTaskNotFound) || errors.Is(err, wire.ErrInvalidParams) || errors.Is(err, wire.ErrUnsupportedOperation)
}

// ask sends a message. Agents that do not stream are not waited for: while they work they can be cancelled, and are asked how far they are.
func (t *turn) ask(ctx context.Context, m *wire.Message) iter.Seq2[wire.Event, error] {
	if t.conn.streams {
		return t.conn.SendStreamingMessage(ctx, nil, &wire.SendMessageRequest{Message: m})
	}
	return func(yield func(wire.Event, error) bool) {
		got, err := t.conn.SendMessage(ctx, nil, &wire.SendMessageRequest{Message: m, Config: &wire.SendMessageConfig{ReturnImmediately: true}})
		yield(got, err)
	}
}

// persist does something until it is done, at the pace of all turns of the provider. What has begun to be told is not told again.
func (t *turn) persist(ctx, asking context.Context, do func() error) error {
	begun := false
	say := func(text string) { t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: t.hide.String(text)}) }
	err := t.pace.Ask(ctx, tries, firstWait, say, func() error {
		err := plainly(asking, do())
		if f, ok := errors.AsType[*provider.Failure](err); ok && (t.task != "" || asking.Err() != nil) {
			f.Again, begun = false, ctx.Err() == nil && asking.Err() == nil
		}
		return err
	})
	if begun {
		return nil // what is missing is asked for
	}
	return err
}

// plainly is plain for what the library returns; the protocol's own errors stay as they are.
func plainly(ctx context.Context, err error) error {
	var theirs *wire.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		return swarm.Errorf(swarm.NoResult, "%w", errSilent)
	case errors.As(err, &theirs):
		return theirs
	}
	return plain(ctx, err)
}

// settled says of a state that the remote does nothing more by itself.
func settled(s wire.TaskState) bool {
	return s.Terminal() || s == wire.TaskStateInputRequired || s == wire.TaskStateAuthRequired
}

// follow hears a task to its end, whatever becomes of the connection: a server that is started again still has it.
func (t *turn) follow(ctx, asking context.Context) error {
	for failed, wait := 0, askAgain; t.task != "" && !settled(t.state); {
		if err := provider.Sleep(ctx, wait); err != nil {
			return err
		}
		before := t.size
		got, err := t.conn.GetTask(asking, nil, &wire.GetTaskRequest{ID: wire.TaskID(t.task)})
		if err == nil {
			err = t.take(got)
		}
		if err == nil && !settled(t.state) && t.conn.streams {
			err = t.hear(ctx, t.conn.SubscribeToTask(asking, nil, &wire.SubscribeToTaskRequest{ID: wire.TaskID(t.task)}))
		}
		if err = plainly(asking, err); ctx.Err() != nil || asking.Err() != nil {
			return err
		}
		f, known := errors.AsType[*provider.Failure](err)
		switch {
		case err == nil:
			failed, wait = 0, min(2*wait, 3*time.Second)
		case t.size > before:
			failed, wait = 0, firstWait
		case known && f.Err.Kind != swarm.NotSignedIn && failed < tries: // also when nobody answers: it may be started again
			failed++
			wait = provider.Backoff(firstWait, failed)
			t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: t.hide.String(f.Err.Msg + "; coming back to the task\n")})
		default:
			return err
		}
	}
	return nil
}

// hear hears a stream, until nothing more comes without us. Not every server ends it then.
func (t *turn) hear(ctx context.Context, events iter.Seq2[wire.Event, error]) error {
	for event, err := range events {
		if err == nil {
			err = t.take(event)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if settled(t.state) {
			break
		}
	}
	return nil
}

// abandon has the remote stop working for a turn that was cut or has failed. It is told at once, and waited for a moment.
func (t *turn) abandon() {
	if t.task == "" || t.state.Terminal() || t.conn == nil {
		return
	}
	done := make(chan struct{})
	t.state = wire.TaskStateCanceled
	t.leaving.Go(func() {
		defer close(done)
		ctx, stop := context.WithTimeout(log.AttachLogger(context.Background(), slog.New(slog.DiscardHandler)), cancelMax)
		defer stop()
		_, _ = t.conn.CancelTask(ctx, nil, &wire.CancelTaskRequest{ID: wire.TaskID(t.task)}) // who does not obey is not heard any more
	})
	select {
	case <-done:
	case <-time.After(provider.CancelTime):
	}
}

// session is with what a later turn goes on: the conversation, and the task, if that waits for us.
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

// judge says whether the turn is good, by how the remote says that it ended.
func (t *turn) judge(ctx context.Context) error {
	switch t.state {
	case wire.TaskStateFailed:
		return swarm.Errorf(swarm.NoResult, "the remote agent failed%s", excerpt.Said(t.why)).WithHint(provider.TryAgain)
	case wire.TaskStateRejected:
		return swarm.Errorf(swarm.NoResult, "the remote agent refused it%s", excerpt.Said(t.why)).WithHint("ask for it in other words, or ask another agent")
	case wire.TaskStateCanceled:
		return swarm.Errorf(swarm.NoResult, "the remote agent says that it was cancelled, and nobody here did that%s", excerpt.Said(t.why))
	case wire.TaskStateAuthRequired:
		return swarm.Errorf(swarm.NotSignedIn, "the remote agent wants somebody to sign in%s", excerpt.Said(t.why)).WithHint("do so where it says, then try again")
	case wire.TaskStateInputRequired:
		return t.question(ctx)
	}
	if strings.TrimSpace(t.output()) == "" {
		return swarm.Errorf(swarm.NoResult, "the remote agent ended without a word").WithHint("ask it for an answer in words")
	}
	return nil
}

// question passes on what the remote agent asks. In a team a person is asked in the agent's name, and the answer is in its next turn; where
// there is no next turn, this one has failed.
func (t *turn) question(ctx context.Context) error {
	asked := t.why
	if asked == "" {
		asked = t.output()
	}
	if asked = strings.TrimSpace(asked); asked == "" {
		asked = "it does not say what"
	}
	asked = excerpt.Head(asked, 7<<10) // a message has room for it
	if t.request.Call == nil {
		return swarm.Errorf(swarm.NeedsInput, "the remote agent asks something%s", excerpt.Said(asked)).WithHint("say it in the prompt, or put the agent into a team, where a person can answer")
	}
	args, err := json.Marshal(map[string]string{"help_description": t.hide.String(asked)})
	if err != nil {
		return swarm.Errorf(swarm.Protocol, "what the remote agent asks cannot be passed on: %w", err)
	}
	t.live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: "question", Name: "request_help", Input: args}})
	answer, err := t.request.Call(ctx, "request_help", args)
	t.live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: "question", Name: "request_help", Output: answer, Failed: err != nil}})
	if err != nil {
		return err
	}
	if strings.TrimSpace(t.output()) == "" {
		return t.put("question", asked, false)
	}
	return nil
}

// clean is an error of ours, without keys.
func (t *turn) clean(err error) error {
	var theirs *wire.Error
	var e *swarm.Error
	switch {
	case errors.As(err, &theirs):
		e = t.theirs(theirs)
	case !errors.As(err, &e):
		e = swarm.Errorf(swarm.NoResult, "the answer breaks off: %w", err)
	}
	e.Msg, e.Hint = t.hide.String(e.Msg), t.hide.String(e.Hint)
	return e
}

// theirs is one of the protocol's own errors.
func (t *turn) theirs(err *wire.Error) *swarm.Error {
	switch {
	case errors.Is(err, wire.ErrUnauthenticated), errors.Is(err, wire.ErrUnauthorized):
		return swarm.Errorf(swarm.NotSignedIn, "the remote agent does not let us in%s", excerpt.Said(err.Error())).WithHint("%s", t.signIn())
	case errors.Is(err, wire.ErrInvalidParams), errors.Is(err, wire.ErrUnsupportedContentType), errors.Is(err, wire.ErrInvalidRequest):
		return swarm.Errorf(swarm.BadInput, "the remote agent does not take the message%s", excerpt.Said(err.Error()))
	case errors.Is(err, wire.ErrVersionNotSupported), errors.Is(err, wire.ErrMethodNotFound), errors.Is(err, wire.ErrParseError):
		return swarm.Errorf(swarm.Protocol, "the remote agent does not speak A2A as we do%s", excerpt.Said(err.Error())).WithHint("A2A %s is spoken here", wire.Version)
	}
	return swarm.Errorf(swarm.NoResult, "the remote agent failed%s", excerpt.Said(err.Error())).WithHint(provider.TryAgain)
}
