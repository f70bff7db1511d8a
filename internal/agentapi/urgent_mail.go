package agentapi

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/mail"
)

// Aside returns the mail to add to the answer of the tool that the agent has just used. It is ""
// unless an urgent message came since the prompt was made.
//
// Mail is read in order, so Aside also returns the messages before the urgent one. A long inbox
// comes in parts, one with each answer. The log has the text, byte for byte, before the agent does.
// The mail is consumed when the turn commits. It stays unread if the turn is cut or the answer does
// not reach the agent.
func (h *TurnHandle) Aside(ctx context.Context, tool string) (string, error) {
	if !h.enter() {
		return "", nil // the next turn gets the mail
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

// urgent returns at most most envelopes, up to the newest urgent one.
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
			return items[:n+1], err // the mail after the urgent one can wait
		}
	}
	return items, err
}

// inject appends the text that the agent is about to see, and marks the mail as shown.
func (h *TurnHandle) inject(ctx context.Context, tool string, items []mail.Item) (string, error) {
	h.service.mu.Lock()
	text := h.service.rules.Aside(h.Agent, mail.UrgentFirst(items))
	h.service.mu.Unlock()
	in := swarm.Injection{Inputs: swarm.Inputs{From: h.upto(), Upto: items[len(items)-1].Seq}, Start: h.Start, Tool: tool,
		Text: swarm.HashOf([]byte(text)), Bytes: len(text)}
	_, _, err := h.append(ctx, swarm.Batch{Bodies: [][]byte{[]byte(text)},
		Events: []swarm.Event{{Kind: swarm.HandoffInjected, Key: swarm.InjectedKey(h.Turn, in), Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: swarm.Encode(in)}}})
	if errors.Is(err, swarm.ErrStale) {
		return "", nil // a newer start of the turn gets the mail
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

// show marks mail as shown in the answer of a call. If that answer is not delivered, the mail is
// shown again. The turn does not end before the delivery is known.
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
