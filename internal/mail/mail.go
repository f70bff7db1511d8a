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
	"encoding/json"
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

// Envelope makes an envelope of what an agent hands in during a turn. Handed in again by the same turn, it is the same message and
// has the same id.
func (r *Rules) Envelope(from string, d Draft, turn string, now time.Time) (swarm.Envelope, error) {
	var none swarm.Envelope
	if err := d.Check(); err != nil {
		return none, err
	}
	sender, ok := r.find(from, from)
	if !ok {
		return none, r.unknown(from)
	}
	if d.From != "" {
		if claimed, ok := r.find(from, d.From); !ok || claimed != sender {
			return none, swarm.Errorf(swarm.BadInput, "fromNodeId is %s, but you are %s", swarm.Quote(d.From), sender).WithHint("leave fromNodeId out")
		}
	}
	receiver, ok := r.find(sender, d.To)
	if !ok {
		return none, r.unknown(d.To)
	}
	if !r.may(sender, receiver) {
		return none, r.noEdge(sender, receiver)
	}
	e := swarm.Envelope{Kind: swarm.Handoff, FromNodeID: sender, ToNodeID: receiver, ContextRef: d.ContextRef,
		Payload: swarm.Payload{Message: d.Message, Structured: d.Structured, Status: d.Status}}
	switch d.Type {
	case "", string(swarm.Handoff):
	case string(swarm.Signal):
		e.Kind = swarm.Signal
	default:
		e.Meta = json.RawMessage(`{"type":"` + d.Type + `"}`) // a word, see Check
	}
	for _, a := range d.Artifacts {
		if a.Type == "" {
			a.Type, _ = splitRef(a.Ref)
		}
		e.Payload.Artifacts = append(e.Payload.Artifacts, a)
	}
	if d.Response != nil {
		answer := *d.Response
		if answer.ReplyTo != "" {
			if answer.ReplyTo, ok = r.find(sender, d.Response.ReplyTo); !ok {
				return none, r.unknown(d.Response.ReplyTo)
			}
		}
		e.Payload.Response = &answer
	}
	e.ID, e.CreatedAt = d.ID, now.UTC()
	if e.ID == "" {
		e.ID = makeID(turn, e)
	}
	if n := len(Encode(e)); n > MaxEnvelope {
		return none, swarm.Errorf(swarm.BadInput, "the message has %d bytes with all that belongs to it; %d are allowed", n, MaxEnvelope).WithHint("%s", useArtifact)
	}
	return e, nil
}

// makeID is the id of an envelope that brings none.
func makeID(turn string, e swarm.Envelope) string {
	sum := sha256.Sum256(append([]byte(turn+"\x00"), content(e)...))
	return "m-" + hex.EncodeToString(sum[:12])
}

// Same says whether two envelopes are the same message: all is the same but for the time at which they were handed in.
func Same(a, b swarm.Envelope) bool {
	return a.ID == b.ID && bytes.Equal(content(a), content(b))
}

// content is what an envelope says, apart from its id and its time.
func content(e swarm.Envelope) []byte {
	e.ID, e.CreatedAt = "", time.Time{}
	return Encode(e)
}

// Encode writes a value of ours as JSON, with < and > as they are: a model reads them more easily than their numbers.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		panic("mail: " + err.Error()) // its types are ours, and the JSON within was read here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
