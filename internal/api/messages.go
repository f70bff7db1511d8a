package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
)

type sentMessage struct {
	Run swarm.RunID `json:"run"`
	ID  string      `json:"id"`
	Seq int64       `json:"seq"`
}

// sendMessage sends a person's message to an agent. The agent gets it in its next turn, with high
// priority between two tool calls of the running turn, and as an interrupt at once. The reply is
// sent when the message is on disk.
func (a *API) sendMessage(r *http.Request) (reply, error) {
	var m struct {
		To         string          `json:"to"`
		Text       string          `json:"text"`
		Interrupt  bool            `json:"interrupt"`
		Priority   string          `json:"priority"`
		Structured json.RawMessage `json:"structured"`
		ContextRef string          `json:"contextRef"`
		Response   string          `json:"response"`
		InReplyTo  string          `json:"inReplyTo"`
		ID         string          `json:"id"`
	}
	if err := errors.Join(ask(r).err, readBody(r, &m, "to", "text", "interrupt", "priority", "structured", "contextRef", "response", "inReplyTo", "id")); err != nil {
		return reply{}, err
	}
	s, err := a.Control.Lookup(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	if string(m.Structured) == "null" { // null counts as left out, as in an envelope
		m.Structured = nil
	}
	d := mail.Draft{To: strings.TrimPrefix(m.To, "@"), Message: m.Text, Structured: m.Structured, Priority: m.Priority, Interrupt: m.Interrupt, ContextRef: m.ContextRef, InReplyTo: m.InReplyTo, ID: m.ID}
	if m.Response != "" {
		d.Response = &swarm.Response{Expectation: m.Response}
	}
	if !slices.Contains(mail.Expectations, m.Response) && m.Response != "" {
		return reply{}, swarm.Errorf(swarm.BadInput, "response cannot be %s", swarm.Quote(m.Response)).WithHint("choose one of %s", each(mail.Expectations))
	}
	sent, err := a.deliver(r.Context(), s, d)
	return reply{http.StatusCreated, sent}, err
}

// deliver stores a person's message to an agent of a run that has not ended.
func (a *API) deliver(ctx context.Context, s swarm.RunSummary, d mail.Draft) (sentMessage, error) {
	route := "/api/v1/runs"
	if s.Kind == swarm.SwarmRun {
		route = "/api/v1/tasks"
	}
	sent, err := a.Control.Send(ctx, s, d, "start another one: POST "+route)
	return sentMessage{s.ID, sent.ID, sent.Seq}, err
}
