package mail

import (
	"encoding/json"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/strictjson"
)

// A Draft is a message that is handed in for sending: the arguments of send_handoff, or a person's
// text.
type Draft struct {
	From       string // the claimed sender; "" = none claimed
	To         string
	Message    string
	Structured json.RawMessage // nil = none
	Artifacts  []swarm.ArtifactRef
	Enclosed   []Enclosure // texts that are stored as artifacts with the message
	Status     *swarm.PayloadStatus
	Response   *swarm.Response
	ContextRef string
	// Type is "handoff" (the default) or "signal", which are the kinds of envelopes. Any other word makes
	// a handoff with this meta.type: request, offer, accept, delegation, info, …
	Type string
	ID   string // "" = one is made
	// Priority becomes meta.priority: "", [Normal] or [High]. Only people may set High, InReplyTo
	// (meta.inReplyTo) and Interrupt, which implies High and cancels the receiver's current turn.
	Priority  string
	Interrupt bool
	InReplyTo string
	// Seq and File are the number and the name of the file that it came in; 0 and "" = it came in none.
	Seq  int
	File string
}

// An Enclosure is a text that comes with a message. Both are stored in one batch, or neither.
type Enclosure struct {
	Kind, Name string // as in put_artifact
	Content    []byte
}

// Expectations are the values of response.expectation.
var Expectations = []string{"none", "optional", "required"}

// ReadDraft reads the arguments of send_handoff. Numbers within structured keep their notation.
func ReadDraft(args []byte) (Draft, error) {
	a := strictjson.ReadArgs(args, "to", "message", "structured", "artifacts", "status", "response", "contextRef", "type",
		"priority", "id", "fromNodeId")
	a.Need("to", "message")
	d := Draft{
		From: a.Text("fromNodeId"), To: a.Text("to"), ContextRef: a.Text("contextRef"), Type: a.Text("type"),
		Priority: a.Text("priority"), ID: a.Text("id"),
	}
	d.readPayload(a, "name", "content")
	if d.Priority == High {
		a.Fail(ForPeople())
	}
	if err := a.Err(); err != nil {
		return Draft{}, err
	}
	return d, nil
}

// ForPeople returns the error for an agent that sets the priority high. Only people may interrupt
// others' turns.
func ForPeople() error {
	return swarm.Errorf(swarm.BadInput, "the priority high is for people").
		WithHint("leave priority out, or write normal: the message is read in the receiver's next turn")
}

// readPayload reads the common part of send_handoff's arguments and an envelope's payload. `more`
// are further fields of artifacts, for enclosed texts.
func (d *Draft) readPayload(a *strictjson.Object, more ...string) {
	d.Message, d.Structured = a.Text("message"), a.JSON("structured")
	for _, in := range a.Objects("artifacts", append([]string{"type", "ref"}, more...)...) {
		if in.Has("content") || in.Has("name") {
			in.Need("type", "name", "content")
			if in.Has("ref") {
				in.Wrong("ref", "left out where there is content: the text gets one when it is stored")
			}
			d.Enclosed = append(d.Enclosed, Enclosure{in.Text("type"), in.Text("name"), []byte(in.Text("content"))})
			continue
		}
		in.Need("ref")
		d.Artifacts = append(d.Artifacts, swarm.ArtifactRef{Type: in.Text("type"), Ref: in.Text("ref")})
	}
	if a.Has("status") {
		in := a.Object("status", "ok", "reason")
		in.Need("ok")
		d.Status = &swarm.PayloadStatus{OK: in.Bool("ok"), Reason: in.Text("reason")}
	}
	if a.Has("response") {
		in := a.Object("response", "expectation", "replyTo")
		in.Need("expectation")
		d.Response = &swarm.Response{Expectation: in.Text("expectation"), ReplyTo: in.Text("replyTo")}
	}
}

// Redacted returns the draft without secrets.
func (d Draft) Redacted(redact func([]byte) []byte) Draft {
	text := func(s string) string { return string(redact([]byte(s))) }
	d.From, d.To, d.Message, d.ContextRef = text(d.From), text(d.To), text(d.Message), text(d.ContextRef)
	d.Type, d.ID, d.InReplyTo, d.Priority = text(d.Type), text(d.ID), text(d.InReplyTo), text(d.Priority)
	d.Structured = strictjson.Redact(d.Structured, redact)
	d.Artifacts = slices.Clone(d.Artifacts)
	for i := range d.Artifacts {
		d.Artifacts[i] = swarm.ArtifactRef{Type: text(d.Artifacts[i].Type), Ref: text(d.Artifacts[i].Ref)}
	}
	if d.Status != nil {
		d.Status = &swarm.PayloadStatus{OK: d.Status.OK, Reason: text(d.Status.Reason)}
	}
	if d.Response != nil {
		d.Response = &swarm.Response{Expectation: text(d.Response.Expectation), ReplyTo: text(d.Response.ReplyTo)}
	}
	return d
}

// Check checks a draft, independent of its sender.
func (d Draft) Check() error {
	switch {
	case strings.TrimSpace(d.Message) == "":
		return swarm.Errorf(swarm.BadInput, "the message is empty").WithHint("say in a few words what you hand over")
	case len(d.Message) > MaxMessage:
		return swarm.Errorf(swarm.BadInput, "the message has %d bytes; %d are allowed", len(d.Message), MaxMessage).
			WithHint("%s", useArtifact)
	case d.Structured != nil && !json.Valid(d.Structured):
		return swarm.Errorf(swarm.BadInput, "structured is not JSON")
	case d.Type != "" && !isWord(d.Type, swarm.MaxName):
		return swarm.Errorf(swarm.BadInput, "%s is not a type of a message", swarm.Quote(d.Type)).
			WithHint("write handoff, signal, or one word such as info, request or answer")
	case d.Priority != "" && !slices.Contains(Priorities, d.Priority):
		return swarm.Errorf(swarm.BadInput, "there is no priority %s", swarm.Quote(d.Priority)).
			WithHint("write %s, or leave it out", strings.Join(Priorities, " or "))
	case d.InReplyTo != "" && !isWord(d.InReplyTo, maxID):
		return swarm.Errorf(swarm.BadInput, "%s is not the id of a message", swarm.Quote(d.InReplyTo)).
			WithHint("`swarm inbox` and `swarm mail` show ids")
	case d.ID != "" && !isWord(d.ID, maxID):
		return swarm.Errorf(swarm.BadInput, "%s is not an id", swarm.Quote(d.ID)).
			WithHint("ids are made of A-Z, a-z, 0-9 and . _ : -, at most %d characters; leave it out and one is made", maxID)
	case d.ContextRef != "" && !IsPack(d.ContextRef):
		return swarm.Errorf(swarm.BadInput, "%s does not refer to a context pack", swarm.Quote(d.ContextRef)).
			WithHint("write contextpack://pack/ID")
	case len(d.Artifacts)+len(d.Enclosed) > maxArtifacts:
		return swarm.Errorf(swarm.BadInput, "the message has %d artifacts; %d are allowed",
			len(d.Artifacts)+len(d.Enclosed), maxArtifacts)
	case d.Response != nil && !slices.Contains(Expectations, d.Response.Expectation):
		return swarm.Errorf(swarm.BadInput, "response.expectation cannot be %s", swarm.Quote(d.Response.Expectation)).
			WithHint("write %s", strings.Join(Expectations, ", "))
	}
	for _, a := range d.Artifacts {
		if kind, _ := splitRef(a.Ref); kind == "" {
			return swarm.Errorf(swarm.BadInput, "%s does not refer to an artifact", swarm.Quote(a.Ref)).
				WithHint("write artifact://KIND/ID, as put_artifact answers it")
		}
		if a.Type != "" && !isWord(a.Type, swarm.MaxName) {
			return swarm.Errorf(swarm.BadInput, "%s is not a type of an artifact", swarm.Quote(a.Type)).
				WithHint("write one word such as diff, log or report")
		}
	}
	return nil
}

// PackPrefix is the prefix of context packs' refs.
const PackPrefix = "contextpack://pack/"

// IsPack reports whether a ref is well-formed for a context pack.
func IsPack(ref string) bool {
	id, ok := strings.CutPrefix(ref, PackPrefix)
	return ok && isWord(id, maxID)
}

// splitRef returns the kind and the id of artifact://kind/id, or nothing for other refs.
func splitRef(ref string) (kind, id string) {
	rest, ok := strings.CutPrefix(ref, "artifact://")
	if !ok {
		return "", ""
	}
	kind, id, _ = strings.Cut(rest, "/")
	if !isWord(kind, swarm.MaxName) || !isWord(id, maxID) {
		return "", ""
	}
	return kind, id
}

// isWord reports whether s can stand in a reference, an id or a type.
func isWord(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}
