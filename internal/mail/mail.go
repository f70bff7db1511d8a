// Package mail has the rules of post between agents: how a message is handed in, to whom it may go, what makes two messages the
// same, and what mail looks like in the prompt of the agent that gets it. Nothing here stores or delivers anything.
//
// What an agent hands in is a [Draft]. [Rules], which know the agents and the edges between them, make an envelope of it or say
// why not, with the choices there are. What the receiver reads is [Inbox]; there the words of others are data, and no line of
// theirs can pass for one of ours.
package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"swarm"
)

// How large mail may be.
const (
	MaxMessage  = 8 << 10 // bytes of a message
	MaxEnvelope = 1 << 20 // bytes of an envelope in JSON

	maxID        = 128
	maxArtifacts = 100
)

const useArtifact = "store the long part with put_artifact, and send its ref in artifacts"

// An Item is an envelope in an inbox. In JSON it is the envelope with its number.
type Item struct {
	Seq int64 `json:"seq"`
	swarm.Envelope
}

// Envelope makes an envelope of what somebody hands in. Handed in again by the same turn, it is the same message and has the same id.
func (r *Rules) Envelope(from string, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	if err := d.Check(); err != nil {
		return swarm.Envelope{}, err
	}
	e := swarm.Envelope{Kind: swarm.Handoff, FromNodeID: d.From, ToNodeID: d.To, ContextRef: d.ContextRef,
		Payload: swarm.Payload{Message: d.Message, Structured: d.Structured, Status: d.Status, Response: d.Response}}
	meta := Meta{Priority: d.Priority, InReplyTo: d.InReplyTo}
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

// Plea is the envelope by which an agent asks a person for help, whether one has written to it or not.
func (r *Rules) Plea(from string, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	if err := d.Check(); err != nil {
		return swarm.Envelope{}, err
	}
	return r.stamp(plea(from, d), d, turn, now)
}

func plea(from string, d Draft) swarm.Envelope {
	return swarm.Envelope{Kind: swarm.Handoff, FromNodeID: from, ToNodeID: swarm.User, Meta: swarm.Encode(Meta{Type: HelpRequest}),
		Payload: swarm.Payload{Message: d.Message, Structured: d.Structured, Response: &swarm.Response{Expectation: "required"}}}
}

// HelpDraft is what an agent hands in that asks a person for help.
func HelpDraft(message string, skills []string) Draft {
	d := Draft{To: swarm.User, Message: message}
	if len(skills) > 0 {
		d.Structured = swarm.Encode(map[string][]string{"skills": skills})
	}
	return d
}

// HelpRequest is the type of a message that asks a person for help.
const HelpRequest = "help_request"

func (r *Rules) stamp(e swarm.Envelope, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	made := makeID(turn, e)
	if strings.HasPrefix(d.ID, swarm.MadeID) && d.ID != made {
		return swarm.Envelope{}, NotYours(d.ID)
	}
	if e.ID, e.CreatedAt = d.ID, now.UTC(); e.ID == "" {
		e.ID = made
	}
	return e, small(e)
}

// NotYours refuses an id that is made of what another envelope says: who sends that one later could not.
func NotYours(id string) error {
	return swarm.Errorf(swarm.BadInput, "the id %s is not yours to give: those that begin with %s are made of what a message says", swarm.Quote(id), swarm.MadeID).
		WithHint("leave id out, or choose another one")
}

// Accept takes an envelope that was written whole, see [ReadEnvelope], or says why it cannot be sent.
func (r *Rules) Accept(from string, e swarm.Envelope) (swarm.Envelope, error) {
	e, err := r.address(from, e)
	if err != nil {
		return e, err
	}
	if err := small(e); err != nil {
		return e, err
	}
	return e, r.permit(e)
}

// address finds whom the names in an envelope mean.
func (r *Rules) address(from string, e swarm.Envelope) (swarm.Envelope, error) {
	var none swarm.Envelope
	sender, ok := r.find(from, from)
	if !ok {
		return none, r.unknown(from, from)
	}
	if e.FromNodeID != "" {
		if claimed, ok := r.find(from, e.FromNodeID); !ok || claimed != sender {
			return none, swarm.Errorf(swarm.BadInput, "fromNodeId is %s, but you are %s", swarm.Quote(e.FromNodeID), sender).WithHint("leave fromNodeId out")
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

// permit says why an envelope may not be sent, or nothing. One that answers a message needs no edge.
func (r *Rules) permit(e swarm.Envelope) error {
	from, to := e.FromNodeID, e.ToNodeID
	switch why, ended := r.ended[to]; {
	case !r.May(from, to) && len(r.owed[[2]string{from, to}]) == 0:
		return r.noEdge(from, to)
	case ended:
		return hasEnded(to, why)
	case r.mute[to] && Expects(e):
		return swarm.Errorf(swarm.BadInput, "%s works elsewhere and can write to nobody, so no reply can be required of it", to).
			WithHint("send it without response; what it says in the end is its answer: wait_for gives it to you")
	}
	if answer := ReplyTo(e); asks(e) && answer != from && !r.May(to, answer) {
		return swarm.Errorf(swarm.BadInput, "replyTo is %s, but %s may not write there. It may write to: %s", answer, to, list(r.receivers(to))).
			WithHint("leave replyTo out: the answer then comes to you")
	}
	return nil
}

func small(e swarm.Envelope) error {
	if n := len(swarm.Encode(e)); n > MaxEnvelope {
		return swarm.Errorf(swarm.BadInput, "the message has %d bytes with all that belongs to it; %d are allowed", n, MaxEnvelope).WithHint("%s", useArtifact)
	}
	return nil
}

// makeID is the id of an envelope that brings none.
func makeID(turn string, e swarm.Envelope) string {
	sum := sha256.Sum256(append([]byte(turn+"\x00"), content(e)...))
	return swarm.MadeID + hex.EncodeToString(sum[:12])
}

// Same says whether two envelopes are the same message: all is the same but for the time at which they were handed in.
func Same(a, b swarm.Envelope) bool {
	return a.ID == b.ID && bytes.Equal(content(a), content(b))
}

// content is what an envelope says, apart from its id and its time.
func content(e swarm.Envelope) []byte {
	e.ID, e.CreatedAt = "", time.Time{}
	return swarm.Encode(e)
}
