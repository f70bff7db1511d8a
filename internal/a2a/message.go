package a2a

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// A letter is what a client's message says, as mail.
type letter struct {
	message string // its id, as the client calls it
	id      string // of the envelope
	text    string // all of it
	data    []any  // of parts that are JSON
}

// A structuredPayload is what comes with a text as structured: what is too long for a message, what is JSON, and what was said before.
type structuredPayload struct {
	Text    string  `json:"text,omitempty"`
	Data    []any   `json:"data,omitempty"`
	History []spoke `json:"history,omitempty"`
}

// A spoke is what somebody said earlier in a conversation.
type spoke struct {
	From string `json:"from"`
	Text string `json:"text"`
}

const (
	maxID   = 256       // of ids that clients give
	maxText = 512 << 10 // of a message; an envelope has room for it beside the rest
	// maxHistory is how much of a conversation a new run is told, from its end.
	maxHistory = 64 << 10
)

// read reads a message strictly.
func read(m *wire.Message) (l letter, err error) {
	switch {
	case m == nil:
		return l, invalid("there is no message", "send params: {message: {…}}")
	case m.ID == "" || len(m.ID) > maxID:
		return l, invalid("the message has no messageId that can be used", fmt.Sprintf("give it one of 1 to %d characters", maxID))
	case len(m.ContextID) > maxID || !utf8.ValidString(m.ContextID):
		return l, invalid("the contextId cannot be used", fmt.Sprintf("it has at most %d characters", maxID))
	case m.Role != wire.MessageRoleUser:
		return l, invalid("the message is not a user's", "write role: ROLE_USER")
	case len(m.Parts) == 0:
		return l, invalid("the message has no parts", `write parts: [{"text": "…"}]`)
	}
	var texts []string
	for i, part := range m.Parts {
		text, err := l.part(part)
		if err != nil {
			return l, fmt.Errorf("part %d: %w", i+1, err)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	l.text = strings.ToValidUTF8(strings.Join(texts, "\n\n"), string(utf8.RuneError))
	if strings.TrimSpace(l.text) == "" {
		if l.data == nil {
			return l, invalid("the message says nothing", "write what the agent is to do")
		}
		l.text = "See structured.data."
	}
	if len(l.text) > maxText {
		return l, invalid(fmt.Sprintf("the message has %d bytes; %d are allowed", len(l.text), maxText), "send less, or say where the rest can be found")
	}
	sum := sha256.Sum256([]byte(m.ID))
	l.message, l.id = m.ID, "a2a-"+hex.EncodeToString(sum[:16])
	return l, nil
}

// part is the text of a part; what is JSON is kept beside it.
func (l *letter) part(p *wire.Part) (string, error) {
	if p == nil {
		return "", invalid("it is null", "leave it out")
	}
	name := p.Filename
	if name == "" {
		name = "a file"
	}
	switch c := p.Content.(type) {
	case wire.Text:
		return string(c), nil
	case wire.Data:
		l.data = append(l.data, c.Value)
		return "", nil
	case wire.URL:
		return fmt.Sprintf("%s: %s", name, string(c)), nil
	case wire.Raw:
		if kind := p.MediaType; utf8.Valid(c) && (kind == "" || strings.HasPrefix(kind, "text/") || kind == "application/json") {
			return fmt.Sprintf("%s:\n%s", name, string(c)), nil
		}
	}
	return "", wire.NewError(wire.ErrUnsupportedContentType, "only text and JSON are taken here, and this is "+swarm.Quote(p.MediaType))
}

// fit is the text that fits into a message, and what comes beside it.
func (l letter) fit(history []spoke) (text string, structured json.RawMessage, err error) {
	more := structuredPayload{Data: l.data, History: history}
	text = l.text
	if len(text) > mail.MaxMessage {
		more.Text = text
		text = "The message is long. All of it is in structured.text; it begins:\n" + strings.ToValidUTF8(text[:1000], "")
	}
	if more.Text == "" && more.Data == nil && more.History == nil {
		return text, nil, nil
	}
	structured, err = json.Marshal(more)
	return text, structured, err
}

// is says whether an envelope is this letter, as it is stored: without keys.
func (l letter) is(e swarm.Envelope, redact func([]byte) []byte) bool {
	text, structured, err := l.fit(nil)
	if err != nil {
		return false
	}
	mine := swarm.Envelope{Payload: swarm.Payload{Message: string(redact([]byte(text))), Structured: strictjson.Redact(structured, redact)}}
	return strings.TrimSpace(textOf(mine)) == strings.TrimSpace(textOf(e)) && dataOf(mine) == dataOf(e)
}

// dataOf is what came as JSON, in one spelling.
func dataOf(e swarm.Envelope) string {
	var more structuredPayload
	if json.Unmarshal(e.Payload.Structured, &more) != nil || len(more.Data) == 0 {
		return ""
	}
	text, _ := json.Marshal(more.Data) // it was read from JSON
	return string(text)
}

// recent is as much of a conversation as a new run is told, from its end.
func recent(all []spoke) []spoke {
	size := 0
	for i := len(all) - 1; i >= 0; i-- {
		if size += len(all[i].Text); size > maxHistory {
			return all[i+1:]
		}
	}
	return all
}

// verdict is what a text says to a question that is answered yes or no.
func verdict(text string) (yes, clear bool) {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!")) {
	case "yes", "y", "ok", "approve", "approved", "allow":
		return true, true
	case "no", "n", "deny", "denied", "refuse":
		return false, true
	}
	return false, false
}
