package a2a

import (
	"context"
	"errors"
	"slices"
	"strings"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/mail"
	"swarm/internal/run"
)

// send stores a message: as mail in an unfinished task, or else as the goal of a new one. When it
// returns, the message is on disk.
//
// A lock makes all servers of a store handle one message at a time. So a message that a
// client sends twice, at the same time or later, is found in the log and stored only once. A server
// that has lost the lock begins nothing.
func (h *handler) send(ctx context.Context, r *wire.SendMessageRequest) (id wire.TaskID, began bool, err error) {
	if err := speaks(ctx); err != nil {
		return "", false, err
	}
	if err := h.takes(r.Config); err != nil {
		return "", false, err
	}
	l, err := read(r.Message)
	if err != nil {
		return "", false, err
	}
	lock, err := h.Control.Home.LockStore(ctx, "a2a")
	if err != nil {
		return "", false, err
	}
	defer lock.Unlock()
	if id := r.Message.TaskID; id != "" {
		return id, false, h.add(ctx, id, r.Message, l)
	}
	id, err = h.findTask(ctx, r.Message, l)
	if err != nil || id != "" {
		return id, false, err
	}
	id, err = h.begin(ctx, lock, r, l)
	return id, true, err
}

// takes refuses a client's wishes for the answer that cannot be met.
func (h *handler) takes(c *wire.SendMessageConfig) error {
	switch {
	case c == nil:
		return nil
	case c.PushConfig != nil:
		return wire.NewError(wire.ErrPushNotificationNotSupported, "nobody is called back here: listen to the task, or ask for it")
	case len(c.AcceptedOutputModes) > 0 && !slices.ContainsFunc(c.AcceptedOutputModes, func(mode string) bool {
		return mode == "*/*" || mode == "text/*" || slices.Contains(given, mode) || strings.HasPrefix(mode, "text") && !strings.Contains(mode, "/")
	}):
		return wire.NewError(wire.ErrUnsupportedContentType, "agents answer with "+strings.Join(given, " or "))
	}
	return countable(c.HistoryLength)
}

// findTask finds the task for a message that names none. That is the task that has the message
// already, or else the unfinished task of its conversation, which gets the message now. It returns
// "" if there is none.
func (h *handler) findTask(ctx context.Context, m *wire.Message, l letter) (open wire.TaskID, err error) {
	begun, err := h.begun(m.ContextID)
	if err != nil {
		return "", err
	}
	for _, s := range begun {
		s = run.Current(h.Control.Home, s)
		began := s.Origin.Message == m.ID
		if !began && m.ContextID == "" || began && s.Status == swarm.Cancelled { // a client that repeats a cancelled message wants a new task
			continue
		}
		id := wire.TaskID(s.ID)
		reader, t, err := h.open(ctx, id)
		if err != nil {
			return "", err
		}
		reader.Close()
		if took, err := t.has(l); took || err != nil {
			return id, err
		}
		if open == "" && !s.Status.Ended() {
			open = id
		}
	}
	if open != "" {
		err = h.add(ctx, open, m, l)
	}
	return open, err
}

// begin starts a run with the message as its goal, and the earlier conversation beside it.
func (h *handler) begin(ctx context.Context, lock swarm.StoreLock, r *wire.SendMessageRequest, l letter) (wire.TaskID, error) {
	m := r.Message
	var history []spoke
	if m.ContextID != "" {
		var err error
		if history, err = h.conversation(ctx, m.ContextID); err != nil {
			return "", err
		}
	}
	text, structured, err := l.fit(recent(history))
	if err != nil {
		return "", err
	}
	w := control.Request{Dir: h.Control.Dir, Goal: text, To: h.agent, Structured: structured, Alone: true, Lock: lock, Origin: &swarm.Origin{Agent: h.agent, Context: m.ContextID, Message: m.ID}}
	if w.Mode, err = metadataText(r.Metadata, "mode"); err != nil {
		return "", err
	}
	if w.Phase, err = metadataText(r.Metadata, "phase"); err != nil {
		return "", err
	}
	id, err := h.Start(ctx, w)
	return wire.TaskID(id), err
}

// metadataText reads a string from the metadata of a request; "" if it is not there.
func metadataText(metadata map[string]any, name string) (string, error) {
	value, ok := metadata[name]
	if !ok {
		return "", nil
	}
	text, ok := value.(string)
	if !ok {
		return "", invalid("metadata."+name+" is no text", "write it as `swarm team --"+name+"` takes it, or leave it out")
	}
	return text, nil
}

// conversation returns all messages of a conversation so far, over all its runs.
func (h *handler) conversation(ctx context.Context, id string) (all []spoke, err error) {
	begun, err := h.begun(id)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(begun) { // the oldest first
		reader, t, err := h.open(ctx, wire.TaskID(s.ID))
		if err != nil {
			return nil, err
		}
		for _, m := range t.history() {
			from := swarm.User
			if m.Role == wire.MessageRoleAgent {
				from = h.agent
			}
			all = append(all, spoke{from, m.Parts[0].Text()})
		}
		text, err := t.output()
		reader.Close()
		if err != nil {
			return nil, err
		}
		if text != "" {
			all = append(all, spoke{h.agent, text})
		}
	}
	return all, nil
}

// add adds a message to an unfinished task: as the answer to the open approval, or as mail. If no
// process drives the run, this one does from then on.
func (h *handler) add(ctx context.Context, id wire.TaskID, m *wire.Message, l letter) error {
	reader, t, err := h.open(ctx, id)
	if err != nil {
		return err
	}
	reader.Close()
	if m.ContextID != "" && m.ContextID != t.context() {
		return invalid("the task belongs to another context", "leave contextId out, or write "+t.context())
	}
	if took, err := t.has(l); took || err != nil {
		return err
	}
	if t.state().Terminal() {
		return wire.NewError(wire.ErrUnsupportedOperation, "the task has ended: it is "+t.state().String()+"; leave taskId out and keep contextId to go on with the conversation")
	}
	asked := t.approval()
	yes, clear := verdict(l.text)
	switch {
	case clear && !h.memory.meant(t.id, l.id, asked.ID):
		return t.changed()
	case asked.ID == "":
		err = h.mail(ctx, t, l)
	case !clear:
		t.noteShown()
		return invalid("@"+asked.Agent+" waits for a yes or a no", "it asks: "+asked.What)
	default:
		_, err = h.Control.Answer(ctx, t.id, asked.ID, run.Decision{OK: yes, Message: l.id})
	}
	if err != nil || t.driven {
		return err
	}
	var owned *swarm.OwnedError
	if err := h.Control.GoOn(ctx, t.id); err != nil && !errors.As(err, &owned) {
		return err
	}
	return nil
}

// changed refuses a yes or no to an approval that is no longer the open one. Otherwise the client
// would answer a question that it has not seen.
func (t *task) changed() error {
	if why := t.why(t.state()); settled(t.state()) && why != "" {
		return invalid("this does not answer what is asked now", "answer this with a message of its own: "+why)
	}
	return invalid("what this answers is not asked any more", "ask for the task to see where it stands")
}

// mail sends a client's message to the agent, as the reply to its oldest open question if it has
// one.
func (h *handler) mail(ctx context.Context, t *task, l letter) error {
	mailbox, err := run.OpenUserMailbox(h.Control.Home, t.id)
	if err != nil {
		return err
	}
	defer mailbox.Close()
	text, structured, err := l.fit(nil)
	if err != nil {
		return err
	}
	d := mail.Draft{To: h.agent, Message: text, Structured: structured, ID: l.id}
	if open := t.questions(); len(open) > 0 {
		_, err = mailbox.Answer(ctx, open[0].ID, d)
	} else {
		_, err = mailbox.FromUser(ctx, d)
	}
	return err
}
