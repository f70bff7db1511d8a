package agentapi

import (
	"context"
	"errors"
	"fmt"

	"swarm"
	"swarm/internal/mail"
)

// Aside is what the agent is told beside the answer of a tool that it has just used: the mail that came since its prompt was made, if
// some of it is not to wait, and "" otherwise. What came before an urgent message is told with it, because mail is read in its order;
// a long inbox is told in pieces, one beside each answer. The log has it, byte for byte, before the agent does. It is consumed when
// the turn commits, and unread again when the turn is cut or the answer does not reach the agent.
func (s *Seat) Aside(ctx context.Context, tool string) (string, error) {
	if !s.enter() {
		return "", nil // the next turn is given it
	}
	defer s.busy.Done()
	s.reading.Lock()
	defer s.reading.Unlock()
	items, err := s.urgent(mostMail)
	if err != nil || len(items) == 0 {
		return "", err
	}
	return s.inject(ctx, tool, items)
}

// AsideAgain tells the next so many envelopes beside the answer of a tool, as it was done in the run that this one replays.
func (s *Seat) AsideAgain(ctx context.Context, tool string, n int) (string, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	items, _, err := s.office.unread(s.Agent, s.upto(), n, urgentBytes)
	if err != nil || len(items) == 0 {
		return "", err
	}
	return s.inject(ctx, tool, items)
}

// urgent is at most so many envelopes up to the newest that is not to wait.
func (s *Seat) urgent(most int) ([]mail.Item, error) {
	o := s.office
	o.mu.Lock()
	err := o.follow()
	var urgent int64
	if err == nil {
		urgent = o.agent(s.Agent).Urgent
	}
	o.mu.Unlock()
	if err != nil || urgent <= s.upto() {
		return nil, err
	}
	items, _, err := o.unread(s.Agent, s.upto(), most, shownBytes)
	for n, item := range items {
		if item.Seq == urgent {
			return items[:n+1], err // what is behind it can wait
		}
	}
	return items, err
}

// inject writes down what the agent is about to be told, and notes that it has seen it.
func (s *Seat) inject(ctx context.Context, tool string, items []mail.Item) (string, error) {
	s.office.mu.Lock()
	text := s.office.rules.Aside(s.Agent, mail.UrgentFirst(items))
	s.office.mu.Unlock()
	in := swarm.Injection{Inputs: swarm.Inputs{From: s.upto(), Upto: items[len(items)-1].Seq}, Start: s.Start, Tool: tool,
		Text: swarm.HashOf([]byte(text)), Bytes: len(text)}
	_, _, err := s.append(ctx, swarm.Batch{Bodies: [][]byte{[]byte(text)},
		Events: []swarm.Event{{Kind: swarm.HandoffInjected, Key: injectedKey(s.Turn, in), Agent: s.Agent, Task: s.Task, Turn: s.Turn, Data: swarm.Encode(in)}}})
	if errors.Is(err, swarm.ErrStale) {
		return "", nil // the turn has begun anew elsewhere, and is given it there
	}
	if err != nil {
		return "", err
	}
	s.show(ctx, items)
	return text, nil
}

// injectedKey is another one for another text: what is told beside an answer that nobody took is told again, perhaps with more.
func injectedKey(turn string, in swarm.Injection) string {
	return fmt.Sprintf("injected:%s:%d:%d:%d:%s", turn, in.Start, in.From, in.Upto, in.Tool)
}

func (s *Seat) upto() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in.Upto
}

// show notes that the agent sees mail in the answer of a call. If that answer does not go out, it has not seen it, and is shown it again;
// the turn is not left before that is known.
func (s *Seat) show(ctx context.Context, items []mail.Item) {
	s.mu.Lock()
	before := s.in.Upto
	s.in.Upto = items[len(items)-1].Seq
	s.mu.Unlock()
	s.busy.Add(1)
	swarm.OnDelivery(ctx, func(arrived bool) {
		defer s.busy.Done()
		if !arrived {
			s.mu.Lock()
			s.in.Upto = min(s.in.Upto, before)
			s.mu.Unlock()
		}
	})
}
