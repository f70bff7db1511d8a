package desk

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
)

// A Message is a file of the message folder. It is another spelling of an envelope: type is meta.type,
// timestamp is createdAt, and content is payload.structured.
type Message struct {
	From, To  string
	Timestamp time.Time
	Type      string // data_ready, question, answer, update, or another
	Content   json.RawMessage
	// Fields are all other fields. Those with the names of an envelope's (id, kind, message, artifacts,
	// status, response, contextRef, meta) have the meaning that they have there.
	Fields map[string]json.RawMessage
}

// ReadMessage reads the text of a message.
func ReadMessage(text []byte) (Message, error) {
	fields, err := readFields("a message", text)
	if err != nil {
		return Message{}, err
	}
	m := Message{Content: orNil(fields["content"])}
	for name, into := range map[string]*string{"from": &m.From, "to": &m.To, "type": &m.Type} {
		if json.Unmarshal(fields[name], into) != nil || isNull(fields[name]) {
			return m, wrongField(name, "a text")
		}
	}
	for name, value := range map[string]string{"from": m.From, "to": m.To} {
		if err := checkParty(value); err != nil {
			return m, inField(name, err)
		}
	}
	if m.Type == "" || len(m.Type) > maxType || !goodName(m.Type) {
		return m, wrongField("type", "data_ready, question, answer, update, or another word")
	}
	var good bool
	if m.Timestamp, good = readTime(fields["timestamp"]); !good || m.Timestamp.IsZero() {
		return m, wrongField("timestamp", "a time such as 2024-01-15T10:30:00Z")
	}
	for _, name := range []string{"from", "to", "type", "timestamp", "content"} {
		delete(fields, name)
	}
	if len(fields) > 0 {
		m.Fields = fields
	}
	return m, m.checkFields()
}

const maxType = 64 // bytes

func wrongField(name, want string) error {
	return swarm.Errorf(swarm.BadInput, "the field %q must be %s", name, want).
		WithHint(`write {"from": "a", "to": "b", "timestamp": "2024-01-15T10:30:00Z", "type": "question", "content": {}}`)
}

// checkParty checks a sender or receiver: an agent, or one of those that are no agents.
func checkParty(name string) error {
	if name == swarm.User || name == swarm.Supervisor || name == swarm.Orchestrator {
		return nil
	}
	return swarm.CheckAgentName(name)
}

// checkFields checks the fields that become fields of the envelope.
func (m Message) checkFields() error {
	var e swarm.Envelope
	return m.fillEnvelope(&e)
}

// fillEnvelope sets the fields of an envelope that stand in further fields of the message.
func (m Message) fillEnvelope(e *swarm.Envelope) error {
	for name, into := range map[string]any{
		"id": &e.ID, "kind": &e.Kind, "message": &e.Payload.Message, "artifacts": &e.Payload.Artifacts,
		"status": &e.Payload.Status, "response": &e.Payload.Response, "contextRef": &e.ContextRef,
	} {
		if value, ok := m.Fields[name]; ok && json.Unmarshal(value, into) != nil {
			return wrongField(name, "as it is in an envelope")
		}
	}
	var meta map[string]json.RawMessage
	if value, ok := m.Fields["meta"]; ok && (json.Unmarshal(value, &meta) != nil || meta == nil) {
		return wrongField("meta", "an object")
	}
	return nil
}

// envelopeFields are the names that a message shares with an envelope.
var envelopeFields = []string{"id", "kind", "message", "artifacts", "status", "response", "contextRef", "meta", "typed"}

// Envelope returns the message in a file as an envelope. Its meta has the type, the number and the file.
// Unknown fields of the message are in meta.fields.
func (m Message) Envelope(file MessageName) swarm.Envelope {
	e := swarm.Envelope{Kind: swarm.Handoff, ID: file.stem(), FromNodeID: m.From, ToNodeID: m.To, CreatedAt: m.Timestamp}
	e.Payload.Structured, e.Payload.Message = m.Content, m.words()
	_ = m.fillEnvelope(&e) // ReadMessage has checked it
	meta := map[string]json.RawMessage{}
	if value, ok := m.Fields["meta"]; ok {
		_ = json.Unmarshal(value, &meta)
	}
	if string(m.Fields["typed"]) != "false" {
		meta["type"] = swarm.Encode(m.Type)
	}
	meta["seq"], meta["file"] = swarm.Encode(file.Number), swarm.Encode(file.String())
	unknown := map[string]json.RawMessage{}
	for name, value := range m.Fields {
		if !slices.Contains(envelopeFields, name) {
			unknown[name] = value
		}
	}
	if len(unknown) > 0 {
		meta["fields"] = swarm.Encode(unknown)
	}
	e.Meta = swarm.Encode(meta)
	return e
}

// words is the text of a message that has none of its own.
func (m Message) words() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil && text != "" {
		return text
	}
	return m.Type
}

// MessageOf returns an envelope as a message. [Message.Envelope] gives the same envelope again, except
// for the number and the file in its meta.
func MessageOf(e swarm.Envelope) Message {
	m := Message{From: e.FromNodeID, To: e.ToNodeID, Timestamp: e.CreatedAt, Content: e.Payload.Structured}
	fields := map[string]json.RawMessage{}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(e.Meta, &meta) // an envelope's meta is an object or missing
	meta = maps.Clone(meta)
	if value, ok := meta["type"]; ok && json.Unmarshal(value, &m.Type) == nil && m.Type != "" {
		delete(meta, "type")
	} else {
		m.Type, fields["typed"] = "update", json.RawMessage("false")
	}
	var file string
	_ = json.Unmarshal(meta["file"], &file)
	stem := ""
	if name, ok := ReadMessageName(file); ok {
		stem = name.stem()
		delete(meta, "file")
		delete(meta, "seq")
	}
	var unknown map[string]json.RawMessage
	if json.Unmarshal(meta["fields"], &unknown) == nil && unknown != nil {
		maps.Copy(fields, unknown)
		delete(meta, "fields")
	}
	if len(meta) > 0 {
		fields["meta"] = swarm.Encode(meta)
	}
	for name, it := range map[string]struct {
		value any
		said  bool
	}{
		"id":         {e.ID, e.ID != stem},
		"kind":       {e.Kind, e.Kind != swarm.Handoff},
		"message":    {e.Payload.Message, e.Payload.Message != m.words()},
		"artifacts":  {e.Payload.Artifacts, e.Payload.Artifacts != nil},
		"status":     {e.Payload.Status, e.Payload.Status != nil},
		"response":   {e.Payload.Response, e.Payload.Response != nil},
		"contextRef": {e.ContextRef, e.ContextRef != ""},
	} {
		if it.said {
			fields[name] = swarm.Encode(it.value)
		}
	}
	if len(fields) > 0 {
		m.Fields = fields
	}
	return m
}

// render is the text of a message file: the fields of the protocol first.
func (m Message) render() []byte {
	content := m.Content
	if content == nil {
		content = json.RawMessage("null")
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"from":%s,"to":%s,"timestamp":%s,"type":%s,"content":%s`, swarm.Encode(m.From), swarm.Encode(m.To),
		swarm.Encode(m.Timestamp.UTC().Format(time.RFC3339Nano)), swarm.Encode(m.Type), content)
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		fmt.Fprintf(&b, `,%s:%s`, swarm.Encode(name), m.Fields[name])
	}
	b.WriteString("}")
	return renderJSON(json.RawMessage(b.String()))
}

// A MessageName is the name of a message file: {from}_to_{to}_{number}.json.
type MessageName struct {
	From, To string
	Number   int
}

func (n MessageName) stem() string   { return fmt.Sprintf("%s_to_%s_%03d", n.From, n.To, n.Number) }
func (n MessageName) String() string { return n.stem() + ".json" }

// maxNumber is the highest number of a message.
const maxNumber = 999_999_999

var messageName = regexp.MustCompile(`^([a-z][a-z0-9-]*)_to_([a-z][a-z0-9-]*)_([0-9]{3,9})\.json$`)

// ReadMessageName reads the name of a file. Names of agents have no underscore, so it can be read in one
// way only.
func ReadMessageName(file string) (MessageName, bool) {
	m := messageName.FindStringSubmatch(file)
	if m == nil || checkParty(m[1]) != nil || checkParty(m[2]) != nil {
		return MessageName{}, false
	}
	number, _ := strconv.Atoi(m[3])
	name := MessageName{m[1], m[2], number}
	return name, name.String() == file // 0007 is another spelling of 007
}
