package a2a

import (
	"context"
	"errors"
	"slices"
	"strings"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/api"
	"swarm/internal/mail"
	"swarm/internal/run"
)

// send gives an agent a message: in a task that goes on it is mail, else it begins one. When it returns, the message is on disk.
func (h *handler) send(ctx context.Context, r *wire.SendMessageRequest) (wire.TaskID, error) {
	if err := speaks(ctx); err != nil {
		return "", err
	}
	if err := h.takes(r.Config); err != nil {
		return "", err
	}
	l, err := read(r.Message)
	if err != nil {
		return "", err
	}
	if id := r.Message.TaskID; id != "" {
		return id, h.add(ctx, id, r.Message, l)
	}
	h.beginning.Lock()
	defer h.beginning.Unlock()
	return h.begin(ctx, r, l)
}

// takes says whether what a client wants of an answer can be given.
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

// begin begins a run, or goes on with the one that the message belongs to: the run that it began when it was sent before, or the one
// of its conversation that goes on.
func (h *handler) begin(ctx context.Context, r *wire.SendMessageRequest, l letter) (wire.TaskID, error) {
	m := r.Message
	begun, err := h.begun(m.ContextID)
	if err != nil {
		return "", err
	}
	var history []spoke
	for _, s := range begun {
		s = run.Current(h.API.Home, s)
		if s.Asked.Message == m.ID && s.Status != swarm.Cancelled { // whoever sends again what he has cancelled wants it again
			return wire.TaskID(s.ID), nil
		}
		if m.ContextID != "" && !s.Status.Ended() {
			return wire.TaskID(s.ID), h.add(ctx, wire.TaskID(s.ID), m, l)
		}
	}
	if m.ContextID != "" {
		if history, err = h.conversation(ctx, m.ContextID); err != nil {
			return "", err
		}
	}
	text, structured, err := l.message(recent(history))
	if err != nil {
		return "", err
	}
	w := api.Wanted{Dir: h.API.Dir, Goal: text, To: h.agent, Structured: structured, Asked: &swarm.Asked{Agent: h.agent, Context: m.ContextID, Message: m.ID}}
	if w.Mode, err = wish(r.Metadata, "mode"); err != nil {
		return "", err
	}
	if w.Phase, err = wish(r.Metadata, "phase"); err != nil {
		return "", err
	}
	id, err := h.API.Driver.Start(ctx, w)
	return wire.TaskID(id), err
}

// wish is a word that a client says beside its message.
func wish(metadata map[string]any, name string) (string, error) {
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

// conversation is what was said in a conversation so far, whichever runs it took.
func (h *handler) conversation(ctx context.Context, id string) (all []spoke, err error) {
	begun, err := h.begun(id)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(begun) { // the oldest first
		look, t, err := h.open(ctx, wire.TaskID(s.ID))
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
		look.Close()
		if err != nil {
			return nil, err
		}
		if text != "" {
			all = append(all, spoke{h.agent, text})
		}
	}
	return all, nil
}

// add says something in a task that goes on: it answers what is asked, or is one more message. If nobody drives the run, this process
// does from then on.
func (h *handler) add(ctx context.Context, id wire.TaskID, m *wire.Message, l letter) error {
	look, t, err := h.open(ctx, id)
	if err != nil {
		return err
	}
	look.Close()
	switch {
	case m.ContextID != "" && m.ContextID != t.context():
		return invalid("the task belongs to another context", "leave contextId out, or write "+t.context())
	case t.run.Asked != nil && t.run.Asked.Message == m.ID: // it is what the task began with, sent again
		return nil
	case t.state().Terminal():
		return wire.NewError(wire.ErrUnsupportedOperation, "the task has ended: it is "+t.state().String()+"; leave taskId out and keep contextId to go on with the conversation")
	}
	if len(t.run.Approvals) > 0 && len(t.questions()) == 0 {
		err = h.decide(ctx, t, l)
	} else {
		err = h.mail(ctx, t, l)
	}
	if err != nil || t.driven {
		return err
	}
	var owned *swarm.OwnedError
	if err := h.API.Driver.Resume(ctx, t.id); err != nil && !errors.As(err, &owned) {
		return err
	}
	return nil
}

// decide answers what an agent may do only if a person allows it.
func (h *handler) decide(ctx context.Context, t *task, l letter) error {
	asked := t.run.Approvals[0]
	yes, clear := verdict(l.text)
	if !clear {
		return invalid("@"+asked.Agent+" waits for a yes or a no", "it asks: "+asked.What)
	}
	return run.Decide(ctx, h.API.Home, t.id, asked.ID, run.Decision{OK: yes, By: "A2A"})
}

// mail sends what a client says to the agent, as the answer to its oldest question if it has one.
func (h *handler) mail(ctx context.Context, t *task, l letter) error {
	post, err := run.OpenPost(h.API.Home, t.id)
	if err != nil {
		return err
	}
	defer post.Close()
	text, structured, err := l.message(nil)
	if err != nil {
		return err
	}
	if before, err := post.Envelope(swarm.User + "/" + l.id); err == nil {
		if before.Payload.Message != text {
			return invalid("a message with this messageId was sent before, and said something else", "give each message an id of its own")
		}
		return nil // it is the same message, sent again
	}
	d := mail.Draft{To: h.agent, Message: text, Structured: structured, ID: l.id}
	if open := t.questions(); len(open) > 0 {
		_, err = post.Answer(ctx, open[0].ID, d)
	} else {
		_, err = post.FromUser(ctx, d)
	}
	return err
}
