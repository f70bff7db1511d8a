// Package mail has the rules for messages between agents: how a message is handed in, who may write
// to whom, when two messages are the same, and how mail looks in the receiver's prompt. It stores
// and delivers nothing.
//
// An agent hands in a [Draft]. [Rules] know the agents and the edges between them. They make an
// envelope from a draft, or return an error that lists the choices. [Rules.Inbox] formats mail for
// the receiver's prompt. Text of senders is data there: none of its lines can be mistaken for one
// of ours.
package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"swarm"
)

// Limits of mail.
const (
	MaxMessage  = 8 << 10 // bytes of a message
	MaxEnvelope = 1 << 20 // bytes of an envelope in JSON

	maxID        = 128
	maxArtifacts = 100
)

const useArtifact = "store the long part with put_artifact, and send its ref in artifacts"

// An Item is an envelope in an inbox. Its JSON is the envelope with its number.
type Item struct {
	Seq int64 `json:"seq"`
	swarm.Envelope
}

// Envelope makes an envelope from a draft. It is idempotent: the same draft in the same turn has
// the same id, so it is the same message.
func (r *Rules) Envelope(from string, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	if err := d.Check(); err != nil {
		return swarm.Envelope{}, err
	}
	e := swarm.Envelope{
		Kind: swarm.Handoff, FromNodeID: d.From, ToNodeID: d.To, ContextRef: d.ContextRef,
		Payload: swarm.Payload{Message: d.Message, Structured: d.Structured, Status: d.Status, Response: d.Response},
	}
	meta := Meta{Priority: d.Priority, InReplyTo: d.InReplyTo, Seq: d.Seq, File: d.File}
	if d.Interrupt {
		meta.Priority = High
	}
	switch d.Type {
	case "", string(swarm.Handoff):
	case string(swarm.Signal):
		e.Kind = swarm.Signal
	default:
		meta.Type = d.Type
	}
	if meta != (Meta{}) {
		e.Meta = swarm.Encode(meta)
	}
	for _, a := range d.Artifacts {
		if a.Type == "" {
			a.Type, _ = splitRef(a.Ref)
		}
		e.Payload.Artifacts = append(e.Payload.Artifacts, a)
	}
	e, err := r.address(from, e)
	if err != nil {
		return e, err
	}
	if e, err = r.stamp(e, d, turn, now); err != nil {
		return e, err
	}
	return e, r.permit(e)
}

// Plea makes the envelope by which an agent asks a person for help. It needs no edge.
func (r *Rules) Plea(from string, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	if err := d.Check(); err != nil {
		return swarm.Envelope{}, err
	}
	return r.stamp(plea(from, d), d, turn, now)
}

func plea(from string, d Draft) swarm.Envelope {
	required := &swarm.Response{Expectation: "required"}
	return swarm.Envelope{
		Kind: swarm.Handoff, FromNodeID: from, ToNodeID: swarm.User, Meta: swarm.Encode(Meta{Type: HelpRequest}),
		Payload: swarm.Payload{Message: d.Message, Structured: d.Structured, Response: required},
	}
}

// HelpDraft returns the draft of a help request.
func HelpDraft(message string, skills []string) Draft {
	d := Draft{To: swarm.User, Message: message}
	if len(skills) > 0 {
		d.Structured = swarm.Encode(map[string][]string{"skills": skills})
	}
	return d
}

// HelpRequest is the type of a message that asks a person for help.
const HelpRequest = "help_request"

// stamp sets the id and the time.
func (r *Rules) stamp(e swarm.Envelope, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	text := content(e)
	made := makeID(turn, text)
	if strings.HasPrefix(d.ID, swarm.MadeID) && d.ID != made {
		return swarm.Envelope{}, NotYours(d.ID)
	}
	if e.ID, e.CreatedAt = d.ID, now.UTC(); e.ID == "" {
		e.ID = made
	}
	if len(text)+len(e.ID)+len(time.RFC3339Nano) <= MaxEnvelope { // as with most, so it need not be encoded again
		return e, nil
	}
	return e, checkSize(e)
}

// NotYours returns the error for an id with the reserved prefix. If a sender could choose such an
// id, the message that really has it would be refused later.
func NotYours(id string) error {
	const msg = "the id %s is not yours to give: those that begin with %s are made of what a message says"
	return swarm.Errorf(swarm.BadInput, msg, swarm.Quote(id), swarm.MadeID).
		WithHint("leave id out, or choose another one")
}

// Accept accepts a complete envelope, see [ReadEnvelope], or returns why it cannot be sent.
func (r *Rules) Accept(from string, e swarm.Envelope) (swarm.Envelope, error) {
	e, err := r.address(from, e)
	if err != nil {
		return e, err
	}
	if err := checkSize(e); err != nil {
		return e, err
	}
	return e, r.permit(e)
}

// address resolves the names in an envelope to agents.
func (r *Rules) address(from string, e swarm.Envelope) (swarm.Envelope, error) {
	var none swarm.Envelope
	sender, ok := r.find(from, from)
	if !ok {
		return none, r.unknown(from, from)
	}
	if e.FromNodeID != "" {
		if claimed, ok := r.find(from, e.FromNodeID); !ok || claimed != sender {
			return none, swarm.Errorf(swarm.BadInput, "fromNodeId is %s, but you are %s", swarm.Quote(e.FromNodeID), sender).
				WithHint("leave fromNodeId out")
		}
	}
	receiver, ok := r.find(sender, e.ToNodeID)
	if !ok || sender == receiver && sender == swarm.User {
		return none, r.unknown(sender, e.ToNodeID)
	}
	e.FromNodeID, e.ToNodeID = sender, receiver
	if e.Payload.Response != nil {
		answer := *e.Payload.Response
		if answer.ReplyTo != "" {
			if answer.ReplyTo, ok = r.find(sender, e.Payload.Response.ReplyTo); !ok {
				return none, r.unknown(sender, e.Payload.Response.ReplyTo)
			}
		}
		e.Payload.Response = &answer
	}
	return e, nil
}

// permit returns an error if an envelope may not be sent. A reply to a message that asks for one
// needs no edge.
func (r *Rules) permit(e swarm.Envelope) error {
	from, to := e.FromNodeID, e.ToNodeID
	switch why, ended := r.ended[to]; {
	case !r.May(from, to) && len(r.owed[[2]string{from, to}]) == 0:
		return r.noEdge(from, to)
	case ended:
		return hasEnded(to, why)
	case r.mute[to] && Expects(e):
		const msg = "%s works elsewhere and can write to nobody, so no reply can be required of it"
		return swarm.Errorf(swarm.BadInput, msg, to).
			WithHint("send it without response; what it says in the end is its answer: wait_for gives it to you")
	}
	if answer := ReplyTo(e); asks(e) && answer != from && !r.May(to, answer) {
		const msg = "replyTo is %s, but %s may not write there. It may write to: %s"
		return swarm.Errorf(swarm.BadInput, msg, answer, to, list(r.receivers(to))).
			WithHint("leave replyTo out: the answer then comes to you")
	}
	return nil
}

func checkSize(e swarm.Envelope) error {
	if n := len(swarm.Encode(e)); n > MaxEnvelope {
		const msg = "the message has %d bytes with all that belongs to it; %d are allowed"
		return swarm.Errorf(swarm.BadInput, msg, n, MaxEnvelope).WithHint("%s", useArtifact)
	}
	return nil
}

// makeID returns the id of an envelope that has none: a hash of the turn and the content. It is an
// idempotency key: a repeated turn sends the same message once.
func makeID(turn string, content []byte) string {
	sum := sha256.Sum256(append([]byte(turn+"\x00"), content...))
	return swarm.MadeID + hex.EncodeToString(sum[:12])
}

// Same reports whether two envelopes are the same message: equal except for the time.
func Same(a, b swarm.Envelope) bool {
	return a.ID == b.ID && bytes.Equal(content(a), content(b))
}

// content returns an envelope without its id and time.
func content(e swarm.Envelope) []byte {
	e.ID, e.CreatedAt = "", time.Time{}
	return swarm.Encode(e)
}
