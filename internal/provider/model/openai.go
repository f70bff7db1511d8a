package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// openai is the Chat Completions API, of OpenAI itself or of a compatible server.
type openai struct{ compatible bool }

func (openai) signRequest(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

type openaiAsk struct {
	Model       string       `json:"model"`
	Messages    []any        `json:"messages"`
	Tools       []openaiTool `json:"tools,omitempty"`
	Temperature *float64     `json:"temperature,omitempty"`
	// OpenAI's newer models accept only the newer name, and most other servers only the older one.
	MaxCompletion int64  `json:"max_completion_tokens,omitempty"`
	MaxTokens     int64  `json:"max_tokens,omitempty"`
	Effort        string `json:"reasoning_effort,omitempty"`
	ServiceTier   string `json:"service_tier,omitempty"`
	CacheKey      string `json:"prompt_cache_key,omitempty"`
	Stream        bool   `json:"stream"`
	StreamOptions any    `json:"stream_options,omitempty"`
}

// streamUsage asks for the usage at the end of a stream.
var streamUsage = map[string]bool{"include_usage": true}

// An openaiMessage is a message of ours.
type openaiMessage struct {
	Role       string `json:"role"`
	Content    any    `json:"content"` // a text, or parts
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// An openaiBeside is what a server sends beside the text and the calls of a message, and wants back.
type openaiBeside struct {
	Content json.RawMessage    `json:"content,omitempty"` // instead of the text, if it is a list of parts
	Others  fields             `json:"others,omitempty"`
	Calls   []openaiCallBeside `json:"calls,omitempty"` // in the order of the calls
}

// An openaiCallBeside are the other fields of a call and of its function.
type openaiCallBeside struct {
	Others   fields `json:"others,omitempty"`
	Function fields `json:"function,omitempty"`
}

type openaiTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// encodeRequest encodes the whole conversation.
func (o openai) encodeRequest(c *conversation) ([]byte, error) {
	q := openaiAsk{
		Model:       c.model,
		Temperature: c.sentTemperature(),
		Effort:      c.effort,
		ServiceTier: c.serviceTier,
		CacheKey:    c.cacheKey,
		Stream:      true,
	}
	if c.system != "" {
		q.Messages = append(q.Messages, openaiMessage{Role: "system", Content: c.system})
	}
	if !c.leftOut[optUsage] {
		q.StreamOptions = streamUsage
	}
	if o.oldLimit(c) {
		q.MaxTokens = c.maxTokens
	} else {
		q.MaxCompletion = c.maxTokens
	}
	for _, tool := range c.tools {
		t := openaiTool{Type: "function"}
		t.Function.Name, t.Function.Description, t.Function.Parameters = tool.Name, tool.Description, schemaOf(tool)
		q.Tools = append(q.Tools, t)
	}
	for i := range c.messages {
		m := &c.messages[i]
		if m.Role == swarm.RoleAssistant {
			q.Messages = append(q.Messages, openaiSaid(c, m))
			continue
		}
		for _, r := range m.Results {
			q.Messages = append(q.Messages, openaiMessage{Role: "tool", Content: r.Text, ToolCallID: r.Call})
		}
		if parts := openaiImages(m.Results); parts != nil {
			q.Messages = append(q.Messages, openaiMessage{Role: m.Role, Content: parts})
		}
		if m.Text != "" {
			q.Messages = append(q.Messages, openaiMessage{Role: m.Role, Content: m.Text})
		}
	}
	return marshal(q)
}

type openaiPiece struct {
	Type     string       `json:"type"`
	Text     string       `json:"text,omitempty"`
	ImageURL *openaiImage `json:"image_url,omitempty"`
}

type openaiImage struct {
	URL string `json:"url"`
}

// openaiImages returns the images of a round as the content of a user's message, because the result
// of a tool takes only text. It returns nil if there are none.
func openaiImages(results []swarm.ToolResult) (parts []openaiPiece) {
	for i := range results {
		images := results[i].Images
		if len(images) > 0 {
			parts = append(parts, openaiPiece{Type: "text", Text: "What the tool call " + results[i].Call + " shows:"})
		}
		for _, image := range images {
			parts = append(parts, openaiPiece{Type: "image_url", ImageURL: &openaiImage{dataURL(image)}})
		}
	}
	return parts
}

// oldLimit says whether the limit of tokens has its older name.
func (o openai) oldLimit(c *conversation) bool { return o.compatible && !c.leftOut[optOldLimit] }

// openaiSaid encodes a message of the model.
func openaiSaid(c *conversation, m *swarm.ChatMessage) any {
	beside := besideOf(c, m)
	said := map[string]any{"role": m.Role, "content": nil}
	switch {
	case !isNull(beside.Content):
		said["content"] = beside.Content
	case m.Text != "":
		said["content"] = m.Text
	}
	var calls []any
	for i, x := range m.Calls {
		var b openaiCallBeside
		if i < len(beside.Calls) {
			b = beside.Calls[i]
		}
		f := map[string]any{"name": x.Name, "arguments": string(validArguments(x.Args))}
		calls = append(calls, b.Others.with(c, map[string]any{"id": x.ID, "type": "function", "function": b.Function.with(c, f)}))
	}
	if calls != nil {
		said["tool_calls"] = calls
	}
	return beside.Others.with(c, said)
}

// besideOf returns what this server has sent beside a message.
func besideOf(c *conversation, m *swarm.ChatMessage) (b openaiBeside) {
	if raw := c.rawOf(m); raw != nil {
		_ = json.Unmarshal(raw, &b) // it was encoded here
	}
	return b
}

func (openai) goesOn() bool { return false }

// refused finds the older name of the limit, fields that a server sends and does not take back, and
// the request for the usage.
func (o openai) refused(c *conversation, words string) option {
	if o.oldLimit(c) && c.maxTokens > 0 && strings.Contains(words, "max_completion_tokens") {
		return optOldLimit
	}
	if !refusesField(words) {
		return ""
	}
	if strings.Contains(words, "stream_options") {
		return optUsage
	}
	for i := range c.messages {
		beside := besideOf(c, &c.messages[i])
		all := []fields{beside.Others}
		for _, x := range beside.Calls {
			all = append(all, x.Others, x.Function)
		}
		for _, f := range all {
			if name := f.refused(words); name != "" {
				return fieldOption(name)
			}
		}
	}
	return ""
}

func (openai) newListener(a *answer) listener {
	return &openaiListener{answer: a, callAt: map[int]*openaiPart{}}
}

// An openaiListener decodes a chat completion.
type openaiListener struct {
	answer  *answer
	content []content // only if a piece of it is a list of parts
	others  kept
	calls   []*openaiPart
	callAt  map[int]*openaiPart // the newest call of each index
}

// An openaiPart is a call whose pieces are still coming.
type openaiPart struct {
	id, name, args string

	others, function kept
}

// An openaiDelta is a message, or a piece of one.
type openaiDelta struct {
	content content
	refusal string
	calls   []openaiCallDelta
	others  fields
}

func (d *openaiDelta) UnmarshalJSON(data []byte) (err error) {
	d.others, err = decodeFields(data, map[string]any{"role": nil, "content": &d.content, "refusal": &d.refusal, "tool_calls": &d.calls})
	return err
}

// An openaiCallDelta is a call, or a piece of one.
type openaiCallDelta struct {
	index            *int // some servers send none, and some send 0 for every call
	id               string
	name             string
	args             string
	others, function fields
}

func (d *openaiCallDelta) UnmarshalJSON(data []byte) (err error) {
	var function, args json.RawMessage
	d.others, err = decodeFields(data, map[string]any{"index": &d.index, "id": &d.id, "type": nil, "function": &function})
	if err != nil || isNull(function) {
		return err
	}
	d.function, err = decodeFields(function, map[string]any{"name": &d.name, "arguments": &args})
	switch {
	case isNull(args):
	case args[0] == '"':
		d.args = decodeText(args)
	default: // an object, as older servers send it
		d.args = string(args)
	}
	return err
}

type openaiChunk struct {
	Model   json.RawMessage `json:"model"`
	Choices []struct {
		Index        int         `json:"index"`
		Delta        openaiDelta `json:"delta"`
		Message      openaiDelta `json:"message"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage  provider.Reported[openaiUsage] `json:"usage"`
	Object string                         `json:"object"`
	Error  json.RawMessage                `json:"error"`
	Detail json.RawMessage                `json:"detail"`
}

type openaiUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
		Wrote  int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Hit  int64    `json:"prompt_cache_hit_tokens"` // DeepSeek's name of cached_tokens
	Cost *float64 `json:"cost"`                    // OpenRouter's, in US dollars
}

// handleEvent takes one event of the stream. Some servers end the stream without a reason.
func (l *openaiListener) handleEvent(data []byte) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		l.setDone()
		return io.EOF
	}
	return l.handleChunk(data)
}

// handleWhole takes an answer that came in one piece. It differs from an event in one field.
func (l *openaiListener) handleWhole(data []byte) error {
	err := l.handleChunk(data)
	if err == nil && l.answer.heard {
		l.setDone()
	}
	return err
}

func (l *openaiListener) setDone() {
	if l.answer.stop == stopNot {
		l.answer.stop = stopDone
	}
}

func (l *openaiListener) handleChunk(data []byte) error {
	var c openaiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		if problemOf(data) != nil {
			return failureIn(data)
		}
		return err
	}
	if !isNull(c.Error) || c.Object == "error" || c.Choices == nil && !isNull(c.Detail) {
		return failureIn(data)
	}
	if u := c.Usage.Value; c.Usage.Given {
		f := provider.Figures{Unusable: c.Usage.Unusable}
		in, out := f.Count(u.Prompt), f.Count(u.Completion)
		cached := min(max(f.Count(u.Details.Cached), f.Count(u.Hit)), in)
		wrote := min(f.Count(u.Details.Wrote), in-cached)
		if u.Cost != nil {
			usd := f.Dollars(*u.Cost)
			l.answer.usd = &usd
		}
		l.answer.tokens, l.answer.unusable = providerkind.Tokens{In: in - cached - wrote, Out: out, Read: cached, Wrote: wrote}, f.Unusable
	}
	l.answer.model = cmp.Or(decodeText(c.Model), l.answer.model)
	l.answer.heard = l.answer.heard || c.Choices != nil || c.Usage.Given
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 { // one answer is asked for
			continue
		}
		for _, d := range []*openaiDelta{&choice.Delta, &choice.Message} {
			if err := l.addDelta(d); err != nil {
				return err
			}
		}
		switch choice.FinishReason {
		case "":
		case "length":
			l.answer.stop = stopLength
		case "content_filter":
			l.answer.stop = stopRefusal
		default:
			l.setDone()
		}
	}
	return nil
}

// addDelta takes a piece of an answer. Servers use different fields for reasoning: reasoning is
// Ollama's and OpenRouter's, reasoning_content that of vLLM, llama.cpp and DeepSeek.
func (l *openaiListener) addDelta(d *openaiDelta) error {
	if d.refusal != "" {
		l.answer.stop = stopRefusal
	}
	thought := decodeText(d.others["reasoning"])
	if thought == "" { // some servers send both
		thought = decodeText(d.others["reasoning_content"])
	}
	for _, said := range []struct {
		kind swarm.DeltaKind
		text string
	}{{swarm.DeltaThinking, thought}, {swarm.DeltaThinking, d.content.thought}, {swarm.DeltaText, d.content.text}, {swarm.DeltaText, d.refusal}} {
		if err := l.answer.show(said.kind, said.text); err != nil {
			return err
		}
	}
	if d.content.list != nil && l.content == nil && l.answer.text.Len() > len(d.content.text) {
		before := l.answer.text.String()
		l.content = []content{{text: before[:len(before)-len(d.content.text)]}}
	}
	if d.content.list != nil || l.content != nil && d.content.text != "" {
		l.content = append(l.content, d.content)
	}
	l.others.add(d.others)
	var here []*openaiPart // the calls that this piece belongs to
	for i := range d.calls {
		here = append(here, l.addCall(&d.calls[i], here))
	}
	return nil
}

// addCall takes a piece of a call, and returns the call. Pieces are put together by their index and
// id. Where a server sends neither, or the same for all calls, a name begins a new call, unless the
// arguments of the last one are not complete.
func (l *openaiListener) addCall(d *openaiCallDelta, here []*openaiPart) *openaiPart {
	index := -1
	if d.index != nil {
		index = *d.index
	}
	c := l.callAt[index]
	if d.index == nil && d.id != "" {
		for _, o := range l.calls {
			if o.id == d.id {
				c = o
			}
		}
	}
	begins := c == nil || d.id != "" && c.id != "" && d.id != c.id
	if !begins && d.name != "" && d.id == "" {
		_, err := object(c.args)
		begins = slices.Contains(here, c) || c.args != "" && err == nil
	}
	if begins {
		c = &openaiPart{}
		l.calls = append(l.calls, c)
	}
	l.callAt[index] = c
	if d.id != "" {
		c.id = d.id
	}
	if d.name != "" {
		c.name = d.name
	}
	c.args += d.args
	c.others.add(d.others)
	c.function.add(d.function)
	return c
}

// message returns the assistant's message with its calls.
func (l *openaiListener) message() (swarm.ChatMessage, error) {
	beside, more := openaiBeside{Others: l.others.join()}, false
	if l.content != nil {
		beside.Content = joinContent(l.content)
	}
	for i, c := range l.calls {
		if c.id == "" {
			c.id = "call_" + strconv.Itoa(i+1)
		}
		l.answer.calls = append(l.answer.calls, swarm.ToolCall{ID: c.id, Name: c.name, Args: c.args})
		b := openaiCallBeside{c.others.join(), c.function.join()}
		beside.Calls = append(beside.Calls, b)
		more = more || len(b.Others)+len(b.Function) > 0
	}
	m := l.answer.message()
	if more || len(beside.Others) > 0 || beside.Content != nil {
		m.Raw = encodeValue(beside)
	}
	return m, nil
}

// schemaOf returns the schema of a tool. A tool without one takes any object.
func schemaOf(t swarm.ToolSpec) json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.Schema
}

// marshal encodes a request without escaping HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
