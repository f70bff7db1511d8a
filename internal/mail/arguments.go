package mail

import (
	"encoding/json"

	"swarm"
)

// Handoff returns a draft as the arguments of send_handoff.
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
