package agentapi

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/mail"
)

// Aside is what the agent is told beside the answer of a tool that it has just used: the mail that came since its prompt was made, if
// some of it is not to wait, and "" otherwise. What came before an urgent message is told with it, because mail is read in its order;
// a long inbox is told in pieces, one beside each answer. The log has it, byte for byte, before the agent does. It is consumed when
// the turn commits, and unread again when the turn is cut or the answer does not reach the agent.
func (h *TurnHandle) Aside(ctx context.Context, tool string) (string, error) {
	if !h.enter() {
		return "", nil // the next turn is given it
	}
	defer h.busy.Done()
	h.reading.Lock()
	defer h.reading.Unlock()
	items, err := h.urgent(mostMail)
	if err != nil || len(items) == 0 {
		return "", err
	}
	return h.inject(ctx, tool, items)
}

// urgent is at most so many envelopes up to the newest that is not to wait.
func (h *TurnHandle) urgent(most int) ([]mail.Item, error) {
	s := h.service
	s.mu.Lock()
	err := s.follow()
	var urgent int64
	if err == nil {
		urgent = s.agent(h.Agent).Urgent
	}
	s.mu.Unlock()
	if err != nil || urgent <= h.upto() {
		return nil, err
	}
	items, _, err := s.unread(h.Agent, h.upto(), most, shownBytes)
	for n, item := range items {
		if item.Seq == urgent {
			return items[:n+1], err // what is behind it can wait
		}
	}
	return items, err
}

// inject writes down what the agent is about to be told, and notes that it has seen it.
func (h *TurnHandle) inject(ctx context.Context, tool string, items []mail.Item) (string, error) {
	h.service.mu.Lock()
	text := h.service.rules.Aside(h.Agent, mail.UrgentFirst(items))
	h.service.mu.Unlock()
	in := swarm.Injection{Inputs: swarm.Inputs{From: h.upto(), Upto: items[len(items)-1].Seq}, Start: h.Start, Tool: tool,
		Text: swarm.HashOf([]byte(text)), Bytes: len(text)}
	_, _, err := h.append(ctx, swarm.Batch{Bodies: [][]byte{[]byte(text)},
		Events: []swarm.Event{{Kind: swarm.HandoffInjected, Key: swarm.InjectedKey(h.Turn, in), Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: swarm.Encode(in)}}})
	if errors.Is(err, swarm.ErrStale) {
		return "", nil // the turn has begun anew elsewhere, and is given it there
	}
	if err != nil {
		return "", err
	}
	h.show(ctx, items)
	return text, nil
}

func (h *TurnHandle) upto() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.in.Upto
}

// show notes that the agent sees mail in the answer of a call. If that answer does not go out, it has not seen it, and is shown it again;
// the turn is not left before that is known.
func (h *TurnHandle) show(ctx context.Context, items []mail.Item) {
	h.mu.Lock()
	before := h.in.Upto
	h.in.Upto = items[len(items)-1].Seq
	h.mu.Unlock()
	h.busy.Add(1)
	swarm.OnDelivery(ctx, func(arrived bool) {
		defer h.busy.Done()
		if !arrived {
			h.mu.Lock()
			h.in.Upto = min(h.in.Upto, before)
			h.mu.Unlock()
		}
	})
}
