package mail

import (
	"bytes"
	"encoding/json"

	"swarm"
)

// Again is the tool, and its arguments, that make this envelope again: a recording keeps them. Who asks a person for help needs nobody's
// leave for that, as it would for a handoff.
func Again(e swarm.Envelope) (tool string, args json.RawMessage) {
	if help, ok := pleaOf(e); ok {
		return "request_help", help
	}
	return "send_handoff", Arguments(e)
}

// pleaOf are the arguments of request_help, if they say all that the envelope says.
func pleaOf(e swarm.Envelope) (args json.RawMessage, ok bool) {
	if e.ToNodeID != swarm.User || MetaOf(e).Type != HelpRequest {
		return nil, false
	}
	var about struct {
		Skills []string `json:"skills"`
	}
	p := e.Payload
	if p.Structured != nil && json.Unmarshal(p.Structured, &about) != nil {
		return nil, false
	}
	if made := plea(e.FromNodeID, HelpDraft(p.Message, about.Skills)); !bytes.Equal(content(made), content(e)) {
		return nil, false
	}
	return swarm.Encode(struct {
		Description string   `json:"help_description"`
		Skills      []string `json:"help_skills,omitempty"`
	}{p.Message, about.Skills}), true
}

// Arguments are those of send_handoff that make this envelope again.
func Arguments(e swarm.Envelope) json.RawMessage {
	d := Draft{To: e.ToNodeID, Message: e.Payload.Message, Structured: e.Payload.Structured, Artifacts: e.Payload.Artifacts, Status: e.Payload.Status,
		Response: e.Payload.Response, ContextRef: e.ContextRef, Type: MetaOf(e).Type, Priority: MetaOf(e).Priority, ID: e.ID}
	if e.Kind == swarm.Signal {
		d.Type = string(swarm.Signal)
	}
	return Handoff(d)
}

// Handoff is a draft as the arguments of send_handoff.
func Handoff(d Draft) json.RawMessage {
	type enclosure struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Content string `json:"content"`
	}
	var artifacts []any
	for _, a := range d.Artifacts {
		artifacts = append(artifacts, a)
	}
	for _, in := range d.Enclosed {
		artifacts = append(artifacts, enclosure{in.Kind, in.Name, string(in.Content)})
	}
	return swarm.Encode(struct {
		To         string               `json:"to"`
		Message    string               `json:"message"`
		Structured json.RawMessage      `json:"structured,omitempty"`
		Artifacts  []any                `json:"artifacts,omitempty"`
		Status     *swarm.PayloadStatus `json:"status,omitempty"`
		Response   *swarm.Response      `json:"response,omitempty"`
		ContextRef string               `json:"contextRef,omitempty"`
		Type       string               `json:"type,omitempty"`
		Priority   string               `json:"priority,omitempty"`
		ID         string               `json:"id,omitempty"`
	}{d.To, d.Message, d.Structured, artifacts, d.Status, d.Response, d.ContextRef, d.Type, d.Priority, d.ID})
}
