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

// A letter is the content of a client's message, as mail.
type letter struct {
	message string // the client's messageId
	id      string // the id of the envelope, made from messageId: the idempotency key
	text    string // the full text
	data    []any  // the JSON parts
}

// A structuredPayload is the structured part of the mail: a text that is too long for a message,
// JSON parts, and the earlier conversation.
type structuredPayload struct {
	Text    string  `json:"text,omitempty"`
	Data    []any   `json:"data,omitempty"`
	History []spoke `json:"history,omitempty"`
}

// A spoke is one earlier message of a conversation.
type spoke struct {
	From string `json:"from"`
	Text string `json:"text"`
}

const (
	maxID   = 256       // bytes of an id from a client
	maxText = 512 << 10 // bytes of a message's text; an envelope has room for that and the rest
	// maxHistory is how many bytes of a conversation a new run gets, from its end.
	maxHistory = 64 << 10
)

// read checks a message, and makes a letter of it.
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

// part returns the text of a part. A JSON part goes into l.data.
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

// fit returns a text that fits into a message, and the structured part for the rest.
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

// is reports whether an envelope has the content of this letter. Stored envelopes have no secrets,
// so the letter is redacted before the comparison.
func (l letter) is(e swarm.Envelope, redact func([]byte) []byte) bool {
	text, structured, err := l.fit(nil)
	if err != nil {
		return false
	}
	mine := swarm.Envelope{Payload: swarm.Payload{Message: string(redact([]byte(text))), Structured: strictjson.Redact(structured, redact)}}
	return strings.TrimSpace(textOf(mine)) == strings.TrimSpace(textOf(e)) && dataOf(mine) == dataOf(e)
}

// dataOf returns the JSON parts of an envelope in a canonical form.
func dataOf(e swarm.Envelope) string {
	var more structuredPayload
	if json.Unmarshal(e.Payload.Structured, &more) != nil || len(more.Data) == 0 {
		return ""
	}
	text, _ := json.Marshal(more.Data) // it was read from JSON
	return string(text)
}

// recent returns the end of a conversation, at most maxHistory bytes.
func recent(all []spoke) []spoke {
	size := 0
	for i := len(all) - 1; i >= 0; i-- {
		if size += len(all[i].Text); size > maxHistory {
			return all[i+1:]
		}
	}
	return all
}

// verdict reads a yes or no. Clear is false if the text is neither.
func verdict(text string) (yes, clear bool) {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!")) {
	case "yes", "y", "ok", "approve", "approved", "allow":
		return true, true
	case "no", "n", "deny", "denied", "refuse":
		return false, true
	}
	return false, false
}
