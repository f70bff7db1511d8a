package agentapi

import (
	"context"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/wording"
)

// Note tells an agent something in the name of the run, by a signal, which gives it no turn. Told again under the same id, it is the same
// note.
func (s *Service) Note(ctx context.Context, id, agent string, m swarm.Message) error {
	text, err := s.say(agent, m)
	if err == nil {
		_, err = s.appendNew(ctx, []swarm.Event{inbound(s.note(swarm.Signal, id, agent, text, ""))})
	}
	return err
}

// Urge is a note that gives the agent a turn. The number is the note's.
func (s *Service) Urge(ctx context.Context, id, agent string, m swarm.Message) (int64, error) {
	text, err := s.say(agent, m)
	if err != nil {
		return 0, err
	}
	return s.appendNew(ctx, []swarm.Event{inbound(s.note(swarm.Handoff, id, agent, text, ""))})
}

// say is the sentence of a message for an agent, which is told of tools or of commands.
func (s *Service) say(agent string, m swarm.Message) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return "", err
	}
	return s.rules.Say(agent, wording.Text(m)), nil
}

// Nudge is a note that does not wait for the agent's next turn: the one that it has now, which is the reason for it, is given it between
// two tools.
func (h *TurnHandle) Nudge(ctx context.Context, id, text string) error {
	e := inbound(h.service.note(swarm.Signal, id, h.Agent, text, mail.High))
	_, err := h.service.appendNew(ctx, []swarm.Event{during(e, h.Task, h.Turn)})
	return err
}

// during says of an envelope of the run which turn it is about.
func during(e swarm.Event, task string, turn swarm.TurnID) swarm.Event {
	e.Task, e.Turn = task, turn
	return e
}

func (s *Service) note(kind swarm.EnvelopeKind, id, agent, text, priority string) swarm.Envelope {
	return swarm.Envelope{Kind: kind, ID: derived("note", id), FromNodeID: swarm.Orchestrator, ToNodeID: agent, CreatedAt: s.now().UTC(),
		Payload: swarm.Payload{Message: text}, Meta: swarm.Encode(mail.Meta{Type: "note", Priority: priority})}
}

// Wrote is to whom the agents of turns have written in them.
func (s *Service) Wrote(turns ...swarm.TurnID) (map[string]bool, error) {
	to := map[string]bool{}
	for _, turn := range turns {
		start, ok, err := s.Log.Find(swarm.StartKey(turn, 1))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // what never started has written to nobody
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

// WaitsFor is whom an agent waits for in its turn now.
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

// Others are all agents of the run but one.
func (s *Service) Others(agent string) (names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	for _, name := range s.rules.Agents() {
		if name != agent {
			names = append(names, name)
		}
	}
	return names, nil
}
