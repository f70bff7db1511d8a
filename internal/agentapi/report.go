package agentapi

import (
	"context"
	"encoding/json"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

const doneDescription = "Report that your work is done. It takes effect at the end of your turn. When you lead the team, the run ends then: report only when " +
	"everything that was asked for is there."

const doneSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["response"],
  "properties": {
    "response": {"type": "string", "description": "What came of it, in a few sentences; details belong into artifacts."}
  }
}`

// reportDone stores the agent's report until the turn ends. The last report counts.
func reportDone(_ context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "response")
	a.Need("response")
	response := a.Text("response")
	if err := a.Err(); err != nil {
		return nil, err
	}
	if len(response) > mail.MaxMessage {
		return nil, swarm.Errorf(swarm.BadInput, "the response has %d bytes; %d are allowed", len(response), mail.MaxMessage).
			WithHint("store the long part with put_artifact, and name its ref")
	}
	response = string(h.service.redact([]byte(response)))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = &response
	return struct{}{}, nil
}

// Done returns the agent's report, and whether it made one. The caller commits it with the turn.
func (h *TurnHandle) Done() (response string, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		return "", false
	}
	return *h.done, true
}

const helpDescription = "Ask a person for help, when you cannot go on by yourself: a decision, a permission, something that only people know. Your turn goes on; " +
	"the answer comes to your inbox. The answer to this call has the request's id."

const swarmHelpDescription = "Ask the supervisor for another agent, when a part of the work needs one of its own. Each agent may have one helper. Your turn goes on; " +
	"the answer comes to your inbox, with the new agent's name. The answer to this call has the request's id."

const helpSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["help_description"],
  "properties": {
    "help_description": {"type": "string", "description": "What you need, and why, so that somebody who has not seen your work can answer."},
    "help_skills": {"type": "array", "items": {"type": "string"}, "description": "What whoever helps must be able to do."}
  }
}`

// A requestResult answers spawn_node, create_edge and request_help.
type requestResult struct {
	Request string `json:"request"`
}

// requestHelp asks for another agent in a swarm. In a team it sends a person a message that asks for
// an answer.
func requestHelp(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	s := h.service
	a := strictjson.ReadArgs(args, "help_description", "help_skills")
	a.Need("help_description")
	d := mail.HelpDraft(a.Text("help_description"), a.Texts("help_skills"))
	skills := a.Texts("help_skills")
	if err := a.Err(); err != nil {
		return nil, err
	}
	if w, swarms, err := s.helper(d, skills); err != nil || swarms {
		if err != nil {
			return nil, err
		}
		return h.ask(ctx, w)
	}
	if s.Redact != nil {
		d = d.Redacted(s.Redact)
	}
	e, err := s.write(func(r *mail.Rules) (swarm.Envelope, error) { return r.Plea(h.Agent, d, h.first(), s.now()) })
	if err != nil {
		return nil, err
	}
	sent, err := s.store(ctx, e, h, swarm.Batch{})
	return requestResult{sent.ID}, err
}
