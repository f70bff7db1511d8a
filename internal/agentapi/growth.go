package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/mail"
	"swarm/internal/permission"
)

const spawnDescription = "Ask for a new agent in your team. It is only a request: a person, or your team's settings, may allow it, change it or refuse it. Your turn goes on; " +
	"the answer comes to your inbox. When it is allowed, the new agent gets your instructions at once, you may write to each other, and nobody " +
	"else may write to it but those in edges. The answer to this call has the request's id."

const spawnSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["name", "instructions"],
  "properties": {
    "name": {"type": "string", "description": "What the new agent is called: a-z, 0-9 and -, beginning with a letter. No agent of the team may have the name."},
    "role": {"type": "string", "description": "The role of an agent of your team that the new one has too; best left out when none fits."},
    "provider": {"type": "string", "description": "The provider of an agent of your team; yours when left out."},
    "instructions": {"type": "string", "description": "What the new agent is to do, at most 8 KB. It has seen nothing of what you have seen."},
    "edges": {"type": "array", "maxItems": 100, "items": {"type": "string"}, "description": "Other agents that may write to the new one, and it to them. You always may."}
  }
}`

const edgeDescription = "Ask that one agent of your team may write to another. It is only a request: a person, or your team's settings, may allow it, change it or refuse it. " +
	"Your turn goes on; the answer comes to your inbox. The answer to this call has the request's id."

const edgeSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["from", "to"],
  "properties": {
    "from": {"type": "string", "description": "The agent that is to hand work on."},
    "to": {"type": "string", "description": "The agent that is to get it."},
    "bidirectional": {"type": "boolean", "description": "Whether it may answer; false when left out."}
  }
}`

// spawnNode requests a new agent.
func spawnNode(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	w, err := growth.ReadSpawn(args)
	if err != nil {
		return nil, err
	}
	return h.ask(ctx, w)
}

// createEdge requests a new edge.
func createEdge(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	w, err := growth.ReadEdge(args)
	if err != nil {
		return nil, err
	}
	return h.ask(ctx, w)
}

// ask appends a growth request if the agent may make it. The same request in the same turn is one
// event. If the team's settings approve requests automatically, the answer goes into the same
// batch. Grant checks the request once more.
func (h *TurnHandle) ask(ctx context.Context, w swarm.GrowthRequest) (any, error) {
	id, events, err := h.service.recordRequest(h, w)
	if err != nil {
		return nil, err
	}
	if len(events) > 0 {
		_, _, err = h.append(ctx, swarm.Batch{Events: events})
	}
	return requestResult{id}, err
}

// recordRequest makes the events of a growth request, after the permission checks. It makes none if
// the request is in the log already. Requests are allowed in every phase.
func (s *Service) recordRequest(h *TurnHandle, w swarm.GrowthRequest) (id string, events []swarm.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return "", nil, err
	}
	w = s.growth.Fill(h.Agent, growth.Clean(w, s.Redact))
	id = h.first() + "/" + string(swarm.HashOf(swarm.Encode(w))[:16])
	if _, there, err := s.Log.Find(swarm.AskedKey(id)); err != nil || there {
		return id, nil, err
	}
	mode := s.growth.Mode()
	err = permission.Checks{
		Capability: func() error {
			if err := s.growth.May(h.Agent, growth.Tool(w)); err != nil && !asksForHelp(w) {
				return err
			}
			return s.growth.Check(id, h.Agent, w, s.rules)
		},
		Approval: func() error {
			if mode == "deny" {
				return swarm.Errorf(swarm.Denied, "this team cannot get new agents or edges: `approvals: {spawn: deny}` in the compose file").
					WithHint("do it with the agents that are there")
			}
			return nil
		},
	}.Pass()
	if err != nil {
		return "", nil, err
	}
	event := func(kind swarm.EventKind, key, to string, body any) swarm.Event {
		return swarm.Event{Kind: kind, Key: key, To: to, Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: swarm.Encode(body)}
	}
	events = []swarm.Event{event(swarm.ApprovalAsked, swarm.AskedKey(id), swarm.ToLoop(swarm.RootLoop), swarm.Approval{ID: id, What: s.describeForPerson(h.Agent, w), Growth: &w, Auto: mode == "auto"})}
	if mode == "auto" {
		by := "`approvals: {spawn: auto}` in the compose file"
		if asksForHelp(w) {
			by = swarm.Supervisor
		}
		events = append(events, event(swarm.ApprovalAnswered, swarm.AnsweredKey(id), swarm.ToControl, swarm.ApprovalAnswer{ID: id, OK: true, Actor: swarm.Actor{By: by}}))
	}
	return id, events, nil
}

// describeForPerson describes a growth request for approval, with the permissions that a new agent
// would get. The caller holds the service's mutex.
func (s *Service) describeForPerson(agent string, w swarm.GrowthRequest) string {
	if w.Spawn == nil {
		return describeRequest(w)
	}
	if asksForHelp(w) {
		return describeRequest(w)
	}
	return "bring in @" + w.Spawn.Name + " (" + s.growth.Gets(agent, *w.Spawn) + ")"
}

// helper makes the request for another agent, if the run is a swarm.
func (s *Service) helper(d mail.Draft, skills []string) (w swarm.GrowthRequest, swarms bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil || !s.growth.Swarm() {
		return w, false, err
	}
	return s.growth.Help(d.Message, skills), true, d.Check()
}

// asksForHelp says whether a request comes of request_help: then the new agent has no name yet.
func asksForHelp(w swarm.GrowthRequest) bool { return w.Spawn != nil && w.Spawn.Name == "" }

// describeRequest describes a growth request in a few words.
func describeRequest(w swarm.GrowthRequest) string {
	if e := w.Edge; e != nil {
		if e.Bidirectional {
			return fmt.Sprintf("let %s and %s write to each other", e.From, e.To)
		}
		return fmt.Sprintf("let %s write to %s", e.From, e.To)
	}
	s := w.Spawn
	text := "bring in @" + s.Name + " (provider " + s.Provider
	if asksForHelp(w) {
		text = "bring in another agent (provider " + s.Provider
	}
	if s.Role != "" {
		text += ", role " + s.Role
	}
	if len(s.Edges) > 0 {
		text += ", joined with " + strings.Join(s.Edges, ", ")
	}
	return text + ")"
}

// explainUnknown replaces the error about an unknown agent if an open request asks for that agent.
// The caller holds the service's mutex.
func (s *Service) explainUnknown(name string, err error) error {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	if err == nil || !s.growth.Wanted(name) {
		return err
	}
	return swarm.Errorf(swarm.BadInput, "%s has not joined yet: the request for it is open", name).
		WithHint("the answer comes to your inbox, and gives you a turn; it has its instructions then")
}
