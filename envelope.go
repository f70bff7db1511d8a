package swarm

import (
	"encoding/json"
	"strings"
	"time"
)

// An Envelope is the one message type between agents.
type Envelope struct {
	Kind       EnvelopeKind    `json:"kind"`
	ID         string          `json:"id"`
	FromNodeID string          `json:"fromNodeId"`
	ToNodeID   string          `json:"toNodeId"`
	CreatedAt  time.Time       `json:"createdAt"`
	Payload    Payload         `json:"payload"`
	ContextRef string          `json:"contextRef,omitempty"`
	Meta       json.RawMessage `json:"meta,omitempty"`
}

// A StoredEnvelope is an envelope in its receiver's inbox.
type StoredEnvelope struct {
	Envelope
	// Read is how far the sender had read its own mail when it wrote this: what it had not read, this
	// does not answer. 0 = a person wrote it, or the run itself, or an older program.
	Read int64 `json:"read,omitempty"`
}

// MadeID is how the ids begin that are made here, of what an envelope says. Nobody else can give one to another envelope.
const MadeID = "m-"

// Ref names the envelope in its run. An id that its sender chose is the sender's own: another's envelope may have the same.
func (e *Envelope) Ref() string {
	if e.FromNodeID == Orchestrator || strings.HasPrefix(e.ID, MadeID) {
		return e.ID
	}
	return e.FromNodeID + "/" + e.ID
}

// An EnvelopeKind says whether an envelope gives its receiver a turn.
type EnvelopeKind string

// Who else writes and gets envelopes.
const (
	User         = "user"         // a person
	Orchestrator = "orchestrator" // the runtime itself: mail that came back, reminders
)

// The kinds of envelopes.
const (
	Handoff EnvelopeKind = "handoff" // gives the receiver a turn
	Signal  EnvelopeKind = "signal"  // waits in the inbox
)

// A Payload is what an envelope says.
type Payload struct {
	Message    string          `json:"message"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Artifacts  []ArtifactRef   `json:"artifacts,omitempty"`
	Status     *PayloadStatus  `json:"status,omitempty"`
	Response   *Response       `json:"response,omitempty"`
}

// An ArtifactRef is bytes by reference.
type ArtifactRef struct {
	Type string `json:"type"`
	Ref  string `json:"ref"` // artifact://kind/id
}

// A PayloadStatus is a pass, a failure or a decision.
type PayloadStatus struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// A Response says whether the sender wants an answer.
type Response struct {
	Expectation string `json:"expectation"` // none, optional or required
	ReplyTo     string `json:"replyTo,omitempty"`
}
