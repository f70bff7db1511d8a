package mail

import (
	"encoding/json"

	"swarm"
)

// Arguments are those of send_handoff that make this envelope again: a recording keeps them.
func Arguments(e swarm.Envelope) json.RawMessage {
	args := struct {
		To         string               `json:"to"`
		Message    string               `json:"message"`
		Structured json.RawMessage      `json:"structured,omitempty"`
		Artifacts  []swarm.ArtifactRef  `json:"artifacts,omitempty"`
		Status     *swarm.PayloadStatus `json:"status,omitempty"`
		Response   *swarm.Response      `json:"response,omitempty"`
		ContextRef string               `json:"contextRef,omitempty"`
		Type       string               `json:"type,omitempty"`
		ID         string               `json:"id"`
	}{e.ToNodeID, e.Payload.Message, e.Payload.Structured, e.Payload.Artifacts, e.Payload.Status, e.Payload.Response, e.ContextRef, MetaOf(e).Type, e.ID}
	if e.Kind == swarm.Signal {
		args.Type = string(swarm.Signal)
	}
	return Encode(args)
}
