package agentapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/strictjson"
)

// FromUser sends a person's message. It needs no edge. An interrupt also cuts the receiver's
// running turn. The cut comes before the message in the same batch, so the turn that the message
// starts is not cut. An urgent message without a cut reaches the running turn between two tool
// calls, see [TurnHandle.Aside].
func (s *Service) FromUser(ctx context.Context, d mail.Draft) (SendResult, error) {
	if s.Redact != nil {
		d = d.Redacted(s.Redact)
	}
	with, err := s.enclose(swarm.Event{Agent: swarm.User}, &d)
	if err != nil {
		return SendResult{}, s.clean(err)
	}
	nonce := rand.Text() // a person who sends the same text twice means two messages
	return s.fromUser(ctx, d.To, d.Interrupt, with, func(r *mail.Rules) (swarm.Envelope, error) { return r.Envelope(swarm.User, d, nonce, s.now()) })
}

// SendEnvelope sends an envelope that the client made itself. With cut set it is an interrupt.
func (s *Service) SendEnvelope(ctx context.Context, e swarm.Envelope, cut bool) (SendResult, error) {
	if strings.HasPrefix(e.ID, swarm.MadeID) {
		return SendResult{}, mail.NotYours(e.ID)
	}
	if s.Redact != nil {
		clean := mail.Draft{Message: e.Payload.Message, Structured: e.Payload.Structured, Artifacts: e.Payload.Artifacts, Status: e.Payload.Status,
			Response: e.Payload.Response, ContextRef: e.ContextRef}.Redacted(s.Redact)
		e.Payload = swarm.Payload{Message: clean.Message, Structured: clean.Structured, Artifacts: clean.Artifacts, Status: clean.Status, Response: clean.Response}
		e.Meta = strictjson.Redact(e.Meta, s.Redact)
	}
	return s.fromUser(ctx, e.ToNodeID, cut, swarm.Batch{}, func(r *mail.Rules) (swarm.Envelope, error) { return r.Accept(swarm.User, e) })
}

func (s *Service) fromUser(ctx context.Context, to string, cut bool, with swarm.Batch, make func(*mail.Rules) (swarm.Envelope, error)) (SendResult, error) {
	e, err := s.write(func(r *mail.Rules) (swarm.Envelope, error) {
		if _, err := r.Find(swarm.User, to); err != nil {
			return swarm.Envelope{}, err
		}
		if s.over {
			return swarm.Envelope{}, s.ended()
		}
		e, err := make(r)
		if err != nil || cut || s.answering(e.ToNodeID) == nil {
			return e, err
		}
		_, there, err := s.Log.Find(swarm.MailKey(e.Ref()))
		if err == nil && !there { // otherwise it is a repeated message, and may have been read
			err = s.answering(e.ToNodeID)
		}
		return e, err
	})
	if err != nil {
		return SendResult{}, s.clean(err)
	}
	if cut {
		with.Events = append(with.Events, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Key: "interrupt:" + e.Ref(),
			Data: swarm.Encode(swarm.ControlCommand{Command: swarm.CommandInterrupt, Target: e.ToNodeID})})
	}
	sent, err := s.store(ctx, e, nil, with)
	if err != nil {
		return SendResult{}, s.clean(err)
	}
	end, ok, err := s.Log.Find(string(swarm.RunEnded))
	if err == nil && ok && end.Seq < sent.Seq {
		err = s.ended() // it came too late, and its receipt says so
	}
	if err != nil || cut {
		return sent, err
	}
	_, err = s.write(func(*mail.Rules) (swarm.Envelope, error) {
		if m := s.team.Member(e.ToNodeID); m != nil && m.Began < sent.Seq { // the answer began meanwhile
			return e, s.answering(e.ToNodeID)
		}
		return e, nil
	})
	return sent, err
}

// A TooLateError refuses a message that nobody would read any more.
type TooLateError struct{ Err *swarm.Error }

func (e *TooLateError) Error() string { return e.Err.Error() }

// Unwrap returns the error with its kind and hint.
func (e *TooLateError) Unwrap() error { return e.Err }

func (s *Service) ended() error {
	return &TooLateError{swarm.Errorf(swarm.BadInput, "run %s has ended", s.Run).WithHint("start another one; `swarm ls` lists those that go on")}
}

// answering refuses a message to the supervisor of a swarm that makes the answer. The run ends with that
// turn, so only an interrupt reaches it. The caller holds the service's mutex.
func (s *Service) answering(agent string) error {
	m := s.team.Member(agent)
	if s.team.Swarm == nil || m == nil || agent != swarm.Supervisor || !m.InTurn() || m.Want != plan.WantAnswer {
		return nil
	}
	return &TooLateError{swarm.Errorf(swarm.BadInput, "the supervisor is writing the answer and reads no more messages").
		WithHint("to have it begin the answer again with your message: swarm send @%s --interrupt --run %s \"…\"", swarm.Supervisor, s.Run)}
}

// Answer sends a person's answer to an envelope that was sent to them.
func (s *Service) Answer(ctx context.Context, id string, d mail.Draft) (SendResult, error) {
	asked, err := s.Envelope(id)
	if err != nil {
		if id, err = s.findByPrefix(id, err); err == nil {
			asked, err = s.Envelope(id)
		}
	}
	if err != nil {
		return SendResult{}, err
	}
	if asked.ToNodeID != swarm.User {
		return SendResult{}, swarm.Errorf(swarm.BadInput, "message %s is for %s, not for you", swarm.Quote(id), asked.ToNodeID).
			WithHint("`swarm inbox --all` lists what came for you; to write to an agent: swarm send @%s", asked.ToNodeID)
	}
	if asked.FromNodeID == swarm.Orchestrator {
		return SendResult{}, swarm.Errorf(swarm.BadInput, "message %s is a notice and takes no answer", swarm.Quote(id))
	}
	d.To, d.InReplyTo = mail.ReplyTo(asked), id
	if d.Type == "" {
		d.Type = "answer"
	}
	return s.FromUser(ctx, d)
}

// Envelope finds a stored envelope by its ref or id. Several envelopes may have an id that their
// senders chose. Then Envelope returns the newest one for the person, or else the newest.
func (s *Service) Envelope(id string) (e swarm.Envelope, err error) {
	event, ok, err := s.Log.Find(swarm.MailKey(id))
	if err == nil && !ok {
		e, ok, err = s.search(id)
		if err == nil && ok {
			return e, nil
		}
	}
	if err != nil {
		return e, err
	}
	if !ok {
		return e, swarm.Errorf(swarm.BadInput, "there is no message %s in run %s", swarm.Quote(id), s.Run).WithHint("`swarm mail` lists them all")
	}
	return swarm.Body[swarm.Envelope](&event)
}

// search finds an envelope by an id that its sender chose.
func (s *Service) search(id string) (found swarm.Envelope, ok bool, err error) {
	for e, err := range swarm.Events(s.Log, 0, swarm.ToAgents) {
		if err != nil {
			return found, false, err
		}
		if e.Kind != swarm.HandoffStored || !bytes.Contains(e.Data, []byte(id)) {
			continue
		}
		env, err := swarm.Body[swarm.Envelope](e)
		if err != nil {
			return found, false, err
		}
		if env.ID == id && (!ok || found.ToNodeID != swarm.User || env.ToNodeID == swarm.User) {
			found, ok = env, true
		}
	}
	return found, ok, nil
}

// findByPrefix returns the id of the only message for the person with this prefix. If there is
// none, it returns notFound.
func (s *Service) findByPrefix(prefix string, notFound error) (id string, err error) {
	var ids []string
	err = s.All(func(item mail.Item) {
		if prefix != "" && strings.HasPrefix(item.ID, prefix) && !slices.Contains(ids, item.ID) {
			ids = append(ids, item.ID)
		}
	})
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", notFound
	case len(ids) > 1:
		return "", swarm.Errorf(swarm.BadInput, "%d messages for you begin with %s", len(ids), swarm.Quote(prefix)).WithHint("write more of it; `swarm inbox --all` lists them")
	}
	return ids[0], nil
}

// UserMail returns the person's unread mail, oldest first, and whether there is more.
func (s *Service) UserMail(max int) (items []mail.Item, more bool, err error) {
	from, err := s.Cursor(swarm.User)
	if err != nil {
		return nil, false, err
	}
	return s.unread(swarm.User, from, max, shownBytes)
}

// All calls fn with all mail that ever came for the person, oldest first.
func (s *Service) All(fn func(mail.Item)) error {
	for after := int64(0); ; {
		items, _, err := s.unread(swarm.User, after, mostMail, shownBytes)
		if err != nil || len(items) == 0 {
			return err
		}
		for _, item := range items {
			after = item.Seq
			fn(item)
		}
	}
}

// UserRead records that the person has read the mail up to a sequence number.
func (s *Service) UserRead(ctx context.Context, upto int64) error {
	from, err := s.Cursor(swarm.User)
	if err != nil || upto <= from {
		return err
	}
	e := swarm.Event{Kind: swarm.HandoffConsumed, Key: swarm.UsedKey(swarm.User, from), Agent: swarm.User, Data: swarm.Encode(swarm.Inputs{From: from, Upto: upto})}
	_, _, err = s.append(ctx, swarm.Batch{Events: []swarm.Event{e}}) // a conflict means that another client recorded the same
	return err
}

func (s *Service) goesOn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return err
	}
	if s.over {
		return s.ended()
	}
	return nil
}

// Find returns the agent that a person means by a name, or an error that lists the agents.
func (s *Service) Find(name string) (agent string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return "", err
	}
	agent, err = s.rules.Find(swarm.User, name)
	return agent, s.clean(err)
}
