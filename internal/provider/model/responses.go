package model

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// responses is OpenAI's Responses API. It is the only one in which OpenAI's models that reason take
// tools. The server stores nothing: the model's reasoning comes encrypted, and goes back with the
// next request.
type responses struct{}

func (responses) signRequest(h http.Header, key string) { openai{}.signRequest(h, key) }

type responsesAsk struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions,omitempty"`
	Input        []any           `json:"input"`
	Tools        []responsesTool `json:"tools,omitempty"`
	Temperature  *float64        `json:"temperature,omitempty"`
	MaxOutput    int64           `json:"max_output_tokens,omitempty"`
	Include      []string        `json:"include,omitempty"`
	Reasoning    *reasoning      `json:"reasoning,omitempty"`
	ServiceTier  string          `json:"service_tier,omitempty"`
	CacheKey     string          `json:"prompt_cache_key,omitempty"`
	Store        bool            `json:"store"`
	Stream       bool            `json:"stream"`
}

type reasoning struct {
	Effort string `json:"effort"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"` // true = every property is required, which ours are not
}

type responsesMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type responsesResult struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // a text, or parts
}

const (
	// encryptedReasoning asks for the reasoning in a form that can go back.
	encryptedReasoning = "reasoning.encrypted_content"
	// leastOutput is the least limit of tokens that the API takes.
	leastOutput = 16
)

// encodeRequest encodes the whole conversation.
func (responses) encodeRequest(c *conversation) ([]byte, error) {
	q := responsesAsk{
		Model:        c.model,
		Instructions: c.system,
		CacheKey:     c.cacheKey,
		Temperature:  c.sentTemperature(),
		ServiceTier:  c.serviceTier,
		Stream:       true,
	}
	if c.effort != "" {
		q.Reasoning = &reasoning{c.effort}
	}
	if c.maxTokens > 0 {
		q.MaxOutput = max(c.maxTokens, leastOutput)
	}
	if !c.leftOut[optEncrypted] {
		q.Include = []string{encryptedReasoning}
	}
	for _, tool := range c.tools {
		q.Tools = append(q.Tools, responsesTool{Type: "function", Name: tool.Name, Description: tool.Description, Parameters: schemaOf(tool)})
	}
	for i := range c.messages {
		m := &c.messages[i]
		if m.Role == swarm.RoleAssistant {
			for _, item := range responsesSaid(c, m).([]fields) {
				q.Input = append(q.Input, item)
			}
			continue
		}
		for _, r := range m.Results {
			q.Input = append(q.Input, responsesResult{"function_call_output", r.Call, responsesOutput(&r)})
		}
		if m.Text != "" {
			q.Input = append(q.Input, responsesMessage{m.Role, m.Text})
		}
	}
	return marshal(q)
}

type responsesPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

// responsesOutput returns the output of a call: its text, or parts if it has images.
func responsesOutput(x *swarm.ToolResult) any {
	if len(x.Images) == 0 {
		return x.Text
	}
	parts := []responsesPart{{Type: "input_text", Text: x.Text}}
	for _, i := range x.Images {
		parts = append(parts, responsesPart{Type: "input_image", ImageURL: dataURL(i)})
	}
	return parts
}

// responsesSaid encodes a message of the model.
func responsesSaid(c *conversation, m *swarm.ChatMessage) any {
	items := []fields{}
	if raw := c.rawOf(m); raw != nil && json.Unmarshal(raw, &items) == nil {
		return items
	}
	if m.Text != "" {
		content := []responsesContent{{Type: "output_text", Text: m.Text}}
		items = append(items, fields{"type": encodeValue("message"), "role": encodeValue(m.Role), "content": encodeValue(content)})
	}
	for _, x := range m.Calls {
		items = append(items, fields{"type": encodeValue("function_call"), "call_id": encodeValue(x.ID), "name": encodeValue(x.Name),
			"arguments": encodeValue(string(validArguments(x.Args)))})
	}
	return items
}

func (responses) goesOn() bool { return false }

// refused finds models that do not reason, which refuse to encrypt their reasoning.
func (responses) refused(_ *conversation, words string) option {
	if strings.Contains(words, "encrypted") {
		return optEncrypted
	}
	return ""
}

func (responses) newListener(a *answer) listener {
	return &responsesListener{answer: a, streamed: map[int]bool{}}
}

// A responsesListener decodes a response. Its items come whole at their end, after their texts came
// in pieces.
type responsesListener struct {
	answer   *answer
	items    []json.RawMessage
	streamed map[int]bool // by index of an item: its text came in pieces
}

// A response is the whole response, at its end.
type response struct {
	Model      json.RawMessage                   `json:"model"`
	Status     string                            `json:"status"`
	Output     []json.RawMessage                 `json:"output"`
	Error      json.RawMessage                   `json:"error"`
	Incomplete struct{ Reason string }           `json:"incomplete_details"`
	Usage      provider.Reported[responsesUsage] `json:"usage"`
}

type responsesUsage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"` // reasoning is a part of it
	Details struct {
		Cached int64 `json:"cached_tokens"`
		Wrote  int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
}

// handleEvent takes one event of the stream.
func (l *responsesListener) handleEvent(data []byte) error {
	var e struct {
		Type     string          `json:"type"`
		Index    int             `json:"output_index"`
		Summary  int             `json:"summary_index"`
		Delta    string          `json:"delta"`
		Item     json.RawMessage `json:"item"`
		Response json.RawMessage `json:"response"`
		Error    json.RawMessage `json:"error"`
		Choices  json.RawMessage `json:"choices"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	if e.Type == "" && !isNull(e.Choices) {
		return answersAsChat()
	}
	a := l.answer
	a.heard = a.heard || strings.HasPrefix(e.Type, "response.")
	switch e.Type {
	case "response.output_text.delta":
		l.streamed[e.Index] = true
		return a.show(swarm.DeltaText, e.Delta)
	case "response.refusal.delta":
		a.stop, l.streamed[e.Index] = stopRefusal, true
		return a.show(swarm.DeltaText, e.Delta)
	case "response.reasoning_summary_part.added":
		if e.Summary > 0 {
			return a.show(swarm.DeltaThinking, "\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		l.streamed[e.Index] = true
		return a.show(swarm.DeltaThinking, e.Delta)
	case "response.output_item.done":
		l.items = append(l.items, append(json.RawMessage(nil), e.Item...))
		if !l.streamed[e.Index] {
			return l.showItem(e.Item)
		}
	case "response.completed", "response.incomplete", "response.failed":
		if err := l.handleEnd(e.Response); err != nil {
			return err
		}
		return io.EOF
	default:
		if e.Type == "error" || !isNull(e.Error) {
			return failureIn(data)
		}
	}
	return nil
}

// handleEnd takes the whole response. Its items have come already, unless the server sent no events
// for them.
func (l *responsesListener) handleEnd(data []byte) error {
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	a := l.answer
	a.model = decodeText(r.Model)
	if u := r.Usage.Value; r.Usage.Given {
		f := provider.Figures{Unusable: r.Usage.Unusable}
		in, out := f.Count(u.Input), f.Count(u.Output)
		cached := min(f.Count(u.Details.Cached), in)
		wrote := min(f.Count(u.Details.Wrote), in-cached)
		a.tokens, a.unusable = providerkind.Tokens{In: in - cached - wrote, Out: out, Read: cached, Wrote: wrote}, f.Unusable
	}
	if !isNull(r.Error) {
		return failureIn(data)
	}
	if l.items == nil {
		l.items = r.Output
		for _, item := range r.Output {
			if err := l.showItem(item); err != nil {
				return err
			}
		}
	}
	switch {
	case r.Status == "incomplete" && r.Incomplete.Reason == "content_filter":
		a.stop = stopRefusal
	case r.Status == "incomplete":
		a.stop = stopLength
	case r.Status == "failed", r.Status == "cancelled":
		return failureOf(http.StatusInternalServerError, &problem{Message: "the response is " + r.Status})
	case a.stop == stopNot && (r.Status != "" || r.Output != nil):
		a.stop = stopDone
	}
	return nil
}

// answersAsChat is the error of a server that has an answer of Chat Completions at the address of Responses.
func answersAsChat() error {
	return swarm.Errorf(swarm.Protocol, "the server answers as Chat Completions does, and not as Responses").
		WithHint("write api: chat for its provider")
}

func (l *responsesListener) handleWhole(data []byte) error {
	var chat struct {
		Choices json.RawMessage `json:"choices"`
	}
	if json.Unmarshal(data, &chat) == nil && !isNull(chat.Choices) {
		return answersAsChat()
	}
	err := l.handleEnd(data)
	if err == nil && l.answer.stop == stopNot && problemOf(data) != nil {
		return failureIn(data)
	}
	return err
}

// A responsesItem is the part of an item that is shown, or called.
type responsesItem struct {
	Type    string `json:"type"`
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Args    string `json:"arguments"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
	Content []responsesContent `json:"content"`
}

type responsesContent struct {
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// showItem shows the text of an item that did not come in pieces.
func (l *responsesListener) showItem(data []byte) error {
	var item responsesItem
	if err := json.Unmarshal(data, &item); err != nil {
		return err
	}
	for _, s := range item.Summary {
		if err := l.answer.show(swarm.DeltaThinking, s.Text); err != nil {
			return err
		}
	}
	if item.Type != "message" {
		return nil
	}
	for _, c := range item.Content {
		if c.Refusal != "" {
			l.answer.stop = stopRefusal
		}
		if err := l.answer.show(swarm.DeltaText, c.Text+c.Refusal); err != nil {
			return err
		}
	}
	return nil
}

// message returns the items as they go back, and collects the calls. Ids are left out: the server
// would look for items that it has not stored. So is reasoning that is not encrypted, because the
// server cannot read it.
func (l *responsesListener) message() (m swarm.ChatMessage, err error) {
	said := []fields{}
	for _, data := range l.items {
		var item responsesItem
		var f fields
		if err := json.Unmarshal(data, &item); err != nil {
			return m, err
		}
		if err := json.Unmarshal(data, &f); err != nil {
			return m, err
		}
		delete(f, "id")
		delete(f, "status")
		switch item.Type {
		case "reasoning":
			if isNull(f["encrypted_content"]) {
				continue
			}
			if isNull(f["content"]) {
				delete(f, "content")
			}
		case "message":
			f["content"] = encodeValue(item.Content) // without annotations
		case "function_call":
			l.answer.calls = append(l.answer.calls, swarm.ToolCall{ID: item.CallID, Name: item.Name, Args: item.Args})
			f["arguments"] = encodeValue(string(validArguments(item.Args)))
		}
		said = append(said, f)
	}
	return l.answer.withRaw(said, responsesSaid), nil
}
