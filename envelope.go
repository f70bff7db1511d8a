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

// A StoredEnvelope is an envelope in its receiver's inbox, as the log stores it.
type StoredEnvelope struct {
	Envelope
	// Read is the number of the newest mail that the sender had read when it wrote this envelope.
	// An envelope cannot be the answer to mail that its sender had not read. 0 means that a person,
	// the runtime or an older program wrote it.
	Read int64 `json:"read,omitempty"`
	// Client is the key of the MCP client that wrote it for a person; "" = none did. The sender is the
	// person all the same, so agents read it as the person's.
	Client string `json:"client,omitempty"`
	// Edited is who has changed the text for a fork; nil = it is the sender's.
	Edited *Actor `json:"edited,omitempty"`
}

// MadeID is the prefix of ids that the runtime derives from an envelope's content. No sender may
// choose an id with this prefix, so such an id never names two envelopes.
const MadeID = "m-"

// Ref names the envelope in its run. An id that a sender chose is unique only among its own
// envelopes, so the sender's name is part of the reference.
func (e *Envelope) Ref() string {
	if e.FromNodeID == Orchestrator || strings.HasPrefix(e.ID, MadeID) {
		return e.ID
	}
	return e.FromNodeID + "/" + e.ID
}

// An EnvelopeKind says whether an envelope gives its receiver a turn.
type EnvelopeKind string

// GoalID is the id of the envelope in which a person gives a team its goal.
const GoalID = "goal"

// Senders and receivers that are not agents.
const (
	User         = "user"         // a person
	Supervisor   = "supervisor"   // the agent of a swarm that divides the query and answers it
	Orchestrator = "orchestrator" // the runtime itself: returned mail, reminders
)

// The kinds of envelopes.
const (
	Handoff EnvelopeKind = "handoff" // gives the receiver a turn
	Signal  EnvelopeKind = "signal"  // waits in the inbox until the receiver's next turn
)

// A Payload is the content of an envelope.
type Payload struct {
	Message    string          `json:"message"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Artifacts  []ArtifactRef   `json:"artifacts,omitempty"`
	Status     *PayloadStatus  `json:"status,omitempty"`
	Response   *Response       `json:"response,omitempty"`
}

// An ArtifactRef names stored bytes that go with an envelope.
type ArtifactRef struct {
	Type string `json:"type"`
	Ref  string `json:"ref"` // artifact://kind/id
}

// A PayloadStatus reports a pass, a failure or a decision.
type PayloadStatus struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// A Response says whether the sender wants an answer, and which envelope this one answers.
type Response struct {
	Expectation string `json:"expectation"` // none, optional or required
	ReplyTo     string `json:"replyTo,omitempty"`
}
