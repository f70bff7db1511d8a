package mail

import (
	"encoding/json"

	"swarm"
)

// Arguments are those of send_handoff that make this envelope again: a recording keeps them.
func Arguments(e swarm.Envelope) json.RawMessage {
	d := Draft{To: e.ToNodeID, Message: e.Payload.Message, Structured: e.Payload.Structured, Artifacts: e.Payload.Artifacts, Status: e.Payload.Status,
		Response: e.Payload.Response, ContextRef: e.ContextRef, Type: MetaOf(e).Type, ID: e.ID}
	if e.Kind == swarm.Signal {
		d.Type = string(swarm.Signal)
	}
	return Handoff(d)
}

// Handoff is a draft as the arguments of send_handoff.
func Handoff(d Draft) json.RawMessage {
	return Encode(struct {
		To         string               `json:"to"`
		Message    string               `json:"message"`
		Structured json.RawMessage      `json:"structured,omitempty"`
		Artifacts  []swarm.ArtifactRef  `json:"artifacts,omitempty"`
		Status     *swarm.PayloadStatus `json:"status,omitempty"`
		Response   *swarm.Response      `json:"response,omitempty"`
		ContextRef string               `json:"contextRef,omitempty"`
		Type       string               `json:"type,omitempty"`
		ID         string               `json:"id,omitempty"`
	}{d.To, d.Message, d.Structured, d.Artifacts, d.Status, d.Response, d.ContextRef, d.Type, d.ID})
}
