package mail

import (
	"bytes"
	"encoding/json"
	"slices"

	"swarm"
	"swarm/internal/strictjson"
)

// Meta is what we write into an envelope's meta. Others may have written more there; it is kept.
type Meta struct {
	Type      string `json:"type,omitempty"`      // what kind of handoff it is: request, offer, answer, …
	Priority  string `json:"priority,omitempty"`  // one of [Priorities]; every other is as if it were not there
	InReplyTo string `json:"inReplyTo,omitempty"` // the id of the envelope that a person answers
}

// The priorities. High is that of what a person does not want to wait; Normal is what all other messages have.
const (
	Normal = "normal"
	High   = "high"
)

// Priorities lists them.
var Priorities = []string{Normal, High}

// MetaOf is what an envelope's meta says. A field that is of another kind says nothing.
func MetaOf(e swarm.Envelope) (m Meta) {
	var fields map[string]json.RawMessage
	if len(e.Meta) == 0 || json.Unmarshal(e.Meta, &fields) != nil {
		return m
	}
	for name, into := range map[string]*string{"type": &m.Type, "priority": &m.Priority, "inReplyTo": &m.InReplyTo} {
		if json.Unmarshal(fields[name], into) != nil {
			*into = ""
		}
	}
	return m
}

// Urgent says whether an envelope is read before others.
func Urgent(e swarm.Envelope) bool { return MetaOf(e).Priority == High }

// UrgentFirst puts what is urgent before the rest, each in its order.
func UrgentFirst(items []Item) []Item {
	urgent := func(i Item) bool { return Urgent(i.Envelope) }
	if !slices.ContainsFunc(items, urgent) {
		return items
	}
	first := make([]Item, 0, len(items))
	for _, now := range []bool{true, false} {
		for _, i := range items {
			if urgent(i) == now {
				first = append(first, i)
			}
		}
	}
	return first
}

// Expects says whether the sender of an envelope must have a reply.
func Expects(e swarm.Envelope) bool {
	return e.Payload.Response != nil && e.Payload.Response.Expectation == "required"
}

// asks says whether the sender of an envelope would like a reply.
func asks(e swarm.Envelope) bool {
	return e.Payload.Response != nil && e.Payload.Response.Expectation != "none"
}

// ReplyTo is who gets the reply to an envelope.
func ReplyTo(e swarm.Envelope) string {
	if r := e.Payload.Response; r != nil && r.ReplyTo != "" {
		return r.ReplyTo
	}
	return e.FromNodeID
}

// ReadEnvelope reads an envelope that somebody wrote as JSON: one object with the fields there are and no others, in their own
// spelling, none twice, and nothing after it. Numbers in structured and meta stay exactly as they are written. Without fromNodeId it
// is from whoever sends it.
func ReadEnvelope(text []byte) (swarm.Envelope, error) {
	a := strictjson.ReadObject("the envelope", text, MaxEnvelope, "kind", "id", "fromNodeId", "toNodeId", "createdAt", "payload", "contextRef", "meta")
	a.Need("kind", "id", "toNodeId", "createdAt", "payload")
	e := swarm.Envelope{Kind: swarm.EnvelopeKind(a.Text("kind")), ID: a.Text("id"), FromNodeID: a.Text("fromNodeId"), ToNodeID: a.Text("toNodeId"),
		CreatedAt: a.Time("createdAt"), ContextRef: a.Text("contextRef"), Meta: a.JSON("meta")}
	p := a.Object("payload", "message", "structured", "artifacts", "status", "response")
	p.Need("message")
	d := Draft{From: e.FromNodeID, To: e.ToNodeID, ContextRef: e.ContextRef, ID: e.ID}
	d.readPayload(p)
	if a.Err() == nil {
		check(a, e)
	}
	if err := a.Err(); err != nil {
		return swarm.Envelope{}, err
	}
	for i := range d.Artifacts {
		if it := &d.Artifacts[i]; it.Type == "" {
			it.Type, _ = splitRef(it.Ref)
		}
	}
	e.Payload = swarm.Payload{Message: d.Message, Structured: d.Structured, Artifacts: d.Artifacts, Status: d.Status, Response: d.Response}
	return e, d.Check()
}

// check holds against the rules what no draft has.
func check(a *strictjson.Object, e swarm.Envelope) {
	kinds := []string{string(swarm.Handoff), string(swarm.Signal)}
	switch {
	case !slices.Contains(kinds, string(e.Kind)):
		a.Fail(swarm.Errorf(swarm.BadInput, "there is no kind of envelope %s", swarm.Quote(string(e.Kind))).WithHint("%s", swarm.DidYouMean(string(e.Kind), kinds)))
	case e.ID == "":
		a.Wrong("id", "an id")
	case e.ToNodeID == "":
		a.Wrong("toNodeId", "a name")
	case e.Meta != nil && !bytes.HasPrefix(e.Meta, []byte("{")):
		a.Wrong("meta", "an object")
	}
}
