package mail

import (
	"bytes"
	"encoding/json"
	"slices"

	"swarm"
	"swarm/internal/strictjson"
)

// Meta are the fields that we write into an envelope's meta. Other fields there are kept.
type Meta struct {
	Type      string `json:"type,omitempty"`      // the type of a handoff: request, offer, answer, …
	Priority  string `json:"priority,omitempty"`  // one of [Priorities]; others are ignored
	InReplyTo string `json:"inReplyTo,omitempty"` // the id of the envelope that a person answers
	Seq       int    `json:"seq,omitempty"`       // the number of the file that it came in
	File      string `json:"file,omitempty"`      // its name
}

// The priorities. High is for people who do not want to wait for the receiver's next turn.
const (
	Normal = "normal"
	High   = "high"
)

// Priorities lists the priorities.
var Priorities = []string{Normal, High}

// MetaOf returns our fields of an envelope's meta. Fields of another type are ignored.
func MetaOf(e swarm.Envelope) Meta {
	if len(e.Meta) == 0 { // as most
		return Meta{}
	}
	var m Meta
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Meta, &fields) != nil {
		return m
	}
	for name, into := range map[string]*string{"type": &m.Type, "priority": &m.Priority, "inReplyTo": &m.InReplyTo} {
		if json.Unmarshal(fields[name], into) != nil {
			*into = ""
		}
	}
	return m
}

// Urgent reports whether an envelope is read before others.
func Urgent(e swarm.Envelope) bool { return MetaOf(e).Priority == High }

// UrgentFirst moves urgent items to the front, and keeps the order otherwise.
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

// Expects reports whether an envelope requires a reply.
func Expects(e swarm.Envelope) bool {
	return e.Payload.Response != nil && e.Payload.Response.Expectation == "required"
}

// asks reports whether an envelope requires or would like a reply.
func asks(e swarm.Envelope) bool {
	return e.Payload.Response != nil && e.Payload.Response.Expectation != "none"
}

// ReplyTo returns the receiver of the reply to an envelope.
func ReplyTo(e swarm.Envelope) string {
	if r := e.Payload.Response; r != nil && r.ReplyTo != "" {
		return r.ReplyTo
	}
	return e.FromNodeID
}

// ReadEnvelope reads an envelope in JSON strictly: one object with known fields only, in exact
// spelling, none twice, and no text after it. Numbers in structured and meta keep their notation.
// Without fromNodeId the sender is whoever hands it in.
func ReadEnvelope(text []byte) (swarm.Envelope, error) {
	a := strictjson.ReadObject("the envelope", text, MaxEnvelope, "kind", "id", "fromNodeId", "toNodeId", "createdAt",
		"payload", "contextRef", "meta")
	a.Need("kind", "id", "toNodeId", "createdAt", "payload")
	e := swarm.Envelope{
		Kind: swarm.EnvelopeKind(a.Text("kind")), ID: a.Text("id"), FromNodeID: a.Text("fromNodeId"),
		ToNodeID: a.Text("toNodeId"), CreatedAt: a.Time("createdAt"), ContextRef: a.Text("contextRef"), Meta: a.JSON("meta"),
	}
	p := a.Object("payload", "message", "structured", "artifacts", "status", "response")
	p.Need("message")
	d := Draft{From: e.FromNodeID, To: e.ToNodeID, ContextRef: e.ContextRef, ID: e.ID}
	d.readPayload(p)
	if a.Err() == nil {
		checkEnvelope(a, e)
	}
	if err := a.Err(); err != nil {
		return swarm.Envelope{}, err
	}
	for i := range d.Artifacts {
		if it := &d.Artifacts[i]; it.Type == "" {
			it.Type, _ = splitRef(it.Ref)
		}
	}
	e.Payload = swarm.Payload{
		Message: d.Message, Structured: d.Structured, Artifacts: d.Artifacts, Status: d.Status, Response: d.Response,
	}
	return e, d.Check()
}

// checkEnvelope checks the fields that a draft does not have.
func checkEnvelope(a *strictjson.Object, e swarm.Envelope) {
	kinds := []string{string(swarm.Handoff), string(swarm.Signal)}
	switch {
	case !slices.Contains(kinds, string(e.Kind)):
		a.Fail(swarm.Errorf(swarm.BadInput, "there is no kind of envelope %s", swarm.Quote(string(e.Kind))).
			WithHint("%s", swarm.DidYouMean(string(e.Kind), kinds)))
	case e.ID == "":
		a.Wrong("id", "an id")
	case e.ToNodeID == "":
		a.Wrong("toNodeId", "a name")
	case e.Meta != nil && !bytes.HasPrefix(e.Meta, []byte("{")):
		a.Wrong("meta", "an object")
	}
}
