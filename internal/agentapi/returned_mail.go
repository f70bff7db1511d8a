package agentapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/wording"
)

// Return returns the unread mail of an agent that has ended. Each envelope is marked as
// undeliverable. Its sender is told, and gets a turn if the envelope would have given one.
//
// The agent's end must be in the log. From then on nothing enters its inbox, so the mail is
// complete. Mail that was returned before stays as it is, so Return can be repeated after a crash.
// It returns the sequence number of the newest envelope to a sender.
func (s *Service) Return(ctx context.Context, agent string, why swarm.Message) (told int64, err error) {
	after, err := s.Cursor(agent)
	if err != nil {
		return 0, err
	}
	for {
		events, err := s.Log.Read(after, page/2, swarm.ToAgent(agent))
		if err != nil || len(events) == 0 {
			return told, err
		}
		var b swarm.Batch
		for _, e := range events {
			after = e.Seq
			if e.Kind != swarm.HandoffStored {
				continue
			}
			env, err := swarm.Body[swarm.Envelope](&e)
			if err != nil {
				return told, err
			}
			b.Events = append(b.Events, s.returned(env, wording.Text(why))...)
		}
		upto, err := s.appendNew(ctx, b.Events)
		if err != nil {
			return told, err
		}
		told = max(told, upto)
	}
}

// returned makes the events that mark an envelope as undeliverable and tell its sender.
func (s *Service) returned(e swarm.Envelope, reason string) []swarm.Event {
	events := []swarm.Event{{Kind: swarm.HandoffReturned, Key: swarm.ReturnedKey(e.Ref()), Agent: e.ToNodeID, Data: swarm.Encode(swarm.Return{ID: e.ID, Ref: e.Ref(), Reason: reason})}}
	s.mu.Lock()
	byRun := e.FromNodeID == swarm.Orchestrator || strings.HasPrefix(e.ID, answerPrefix(swarm.Supervisor)+"-")
	told := !byRun && !s.rules.Ended(e.FromNodeID)
	s.mu.Unlock()
	if !told {
		return events
	}
	back := swarm.Envelope{Kind: e.Kind, ID: derived("back", e.Ref()), FromNodeID: swarm.Orchestrator, ToNodeID: e.FromNodeID, CreatedAt: s.now().UTC(),
		Payload: swarm.Payload{Message: fmt.Sprintf("Your message %s to %s was not delivered: %s", e.ID, e.ToNodeID, reason),
			Structured: swarm.Encode(map[string]string{"undeliverable": e.ID, "to": e.ToNodeID, "reason": reason}), Status: &swarm.PayloadStatus{Reason: "undeliverable"}},
		Meta: swarm.Encode(mail.Meta{Type: undeliverable})}
	return append(events, inbound(back))
}

func inbound(e swarm.Envelope) swarm.Event {
	return swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(e.ToNodeID), Key: swarm.MailKey(e.Ref()), Agent: e.FromNodeID, Data: swarm.Encode(e)}
}

// appendNew appends the events whose keys are not in the log yet. It returns the highest sequence
// number of their envelopes, old and new.
func (s *Service) appendNew(ctx context.Context, events []swarm.Event) (upto int64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	seqs, err := s.Log.Append(ctx, swarm.Batch{Events: events})
	if errors.Is(err, swarm.ErrConflict) { // some are in the log, with another time or reason
		seqs, err = nil, nil
		for _, e := range events {
			found, ok, err := s.Log.Find(e.Key)
			if err == nil && !ok {
				found.Seq, _, err = s.append(ctx, swarm.Batch{Events: []swarm.Event{e}})
			}
			if err != nil {
				return 0, err
			}
			seqs = append(seqs, found.Seq)
		}
	}
	for i, seq := range seqs {
		if events[i].Kind == swarm.HandoffStored {
			upto = max(upto, seq)
		}
	}
	return upto, err
}

// Overdue reminds an agent that an envelope still asks for its reply. With timeout set, it tells
// the envelope's sender that the reply will not come. Either gives a turn. Repeating the call
// appends nothing. It returns the sequence number of the reminder.
func (s *Service) Overdue(ctx context.Context, id string, timeout bool) (int64, error) {
	asked, err := s.Envelope(id)
	if err != nil {
		return 0, err
	}
	to := mail.ReplyTo(asked)
	how, err := s.answerBy(asked)
	if err != nil || how == "" && !timeout {
		return 0, err // no reply is possible any more
	}
	e := swarm.Envelope{Kind: swarm.Handoff, ID: derived("remind", id), FromNodeID: swarm.Orchestrator, ToNodeID: asked.ToNodeID, CreatedAt: s.now().UTC(),
		Payload: swarm.Payload{Message: fmt.Sprintf("Message %s from %s still wants your reply; %s. It says: %s", asked.ID, asked.FromNodeID, how, head(asked.Payload.Message)),
			Structured: swarm.Encode(map[string]string{"reminder": id, "replyTo": to})},
		Meta: swarm.Encode(mail.Meta{Type: reminder})}
	if timeout {
		e.ID, e.ToNodeID, e.Meta = derived("over", id), asked.FromNodeID, swarm.Encode(mail.Meta{Type: unanswered})
		e.Payload = swarm.Payload{Message: fmt.Sprintf("@%s never replied to your message %s, and nobody waits for the reply any more. Go on without it, or ask somebody else. It says: %s", asked.ToNodeID, asked.ID, head(asked.Payload.Message)),
			Structured: swarm.Encode(map[string]string{"unanswered": id, "by": asked.ToNodeID})}
	}
	return s.appendNew(ctx, []swarm.Event{inbound(e)})
}

// answerBy says how an agent can give the reply that it owes. It returns "" if the agent that
// waited has ended. The reminder itself permits the reply.
func (s *Service) answerBy(asked swarm.Envelope) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return "", err
	}
	return s.rules.AnswerBy(asked.ToNodeID, asked), nil
}

// Types of envelopes that the run itself writes, on a timeout or when an agent has ended.
const (
	reminder      = "reminder"
	unanswered    = "unanswered"
	undeliverable = "undeliverable"
)

// derived makes the id of an envelope that another envelope or record causes. It is the same each
// time, so the envelope is stored once.
func derived(what, id string) string {
	sum := sha256.Sum256([]byte(what + "\x00" + id))
	return what + "-" + hex.EncodeToString(sum[:12])
}
