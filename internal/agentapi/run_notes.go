package agentapi

import (
	"context"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/wording"
)

// Note sends an agent a signal in the name of the run. A signal gives no turn. The same id again is
// the same note.
func (s *Service) Note(ctx context.Context, id, agent string, m swarm.Message) error {
	text, err := s.wordFor(agent, m)
	if err == nil {
		_, err = s.appendNew(ctx, []swarm.Event{inbound(s.note(swarm.Signal, id, agent, text, ""))})
	}
	return err
}

// Urge sends a note that gives the agent a turn. It returns the sequence number of the note.
func (s *Service) Urge(ctx context.Context, id, agent string, m swarm.Message) (int64, error) {
	text, err := s.wordFor(agent, m)
	if err != nil {
		return 0, err
	}
	return s.appendNew(ctx, []swarm.Event{inbound(s.note(swarm.Handoff, id, agent, text, ""))})
}

// wordFor words a message for an agent, which reads of tools or of commands depending on its
// provider.
func (s *Service) wordFor(agent string, m swarm.Message) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return "", err
	}
	return s.rules.Say(agent, wording.Text(m)), nil
}

// Nudge sends a note that does not wait for the agent's next turn. The running turn, which caused
// it, gets it between two tool calls.
func (h *TurnHandle) Nudge(ctx context.Context, id, text string) error {
	e := inbound(h.service.note(swarm.Signal, id, h.Agent, text, mail.High))
	_, err := h.service.appendNew(ctx, []swarm.Event{during(e, h.Task, h.Turn)})
	return err
}

// during sets the turn that an envelope of the run is about.
func during(e swarm.Event, task string, turn swarm.TurnID) swarm.Event {
	e.Task, e.Turn = task, turn
	return e
}

func (s *Service) note(kind swarm.EnvelopeKind, id, agent, text, priority string) swarm.Envelope {
	return swarm.Envelope{Kind: kind, ID: derived("note", id), FromNodeID: swarm.Orchestrator, ToNodeID: agent, CreatedAt: s.now().UTC(),
		Payload: swarm.Payload{Message: text}, Meta: swarm.Encode(mail.Meta{Type: "note", Priority: priority})}
}

// Wrote returns the agents to which the turns have sent messages.
func (s *Service) Wrote(turns ...swarm.TurnID) (map[string]bool, error) {
	to := map[string]bool{}
	for _, turn := range turns {
		start, ok, err := s.Log.Find(swarm.StartKey(turn, 1))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // a turn that never started has written nothing
		}
		for e, err := range swarm.Events(s.Log, start.Seq, swarm.ToAgents) {
			if err != nil {
				return nil, err
			}
			if e.Turn == turn && e.Kind == swarm.HandoffStored && e.Agent != swarm.Orchestrator {
				to[strings.TrimPrefix(e.To, swarm.ToAgent(""))] = true
			}
		}
	}
	return to, nil
}

// WaitsFor returns the agents that an agent waits for now.
func (s *Service) WaitsFor(agent string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow() != nil {
		return nil
	}
	m := s.team.Member(agent)
	if m == nil {
		return nil
	}
	return slices.Clone(m.For)
}

// Others returns all agents of the run but one.
func (s *Service) Others(agent string) (names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(s.rules.Agents()), func(name string) bool { return name == agent }), nil
}
