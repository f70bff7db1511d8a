package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

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
	Model       string          `json:"model"`
	Messages    []openaiMessage `json:"messages"`
	Tools       []openaiTool    `json:"tools,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	// OpenAI's newer models accept only the newer name, and other servers only the older one.
	MaxCompletion int64 `json:"max_completion_tokens,omitempty"`
	MaxTokens     int64 `json:"max_tokens,omitempty"`
	Stream        bool  `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type openaiMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type openaiCall struct {
	Index    int    `json:"index,omitempty"` // in answers only
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
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
		Temperature: c.temperature,
		Stream:      true,
	}
	if c.system != "" {
		q.Messages = append(q.Messages, openaiMessage{Role: "system", Content: &c.system})
	}
	q.Messages = append(q.Messages, openaiMessage{Role: "user", Content: &c.prompt})
	q.StreamOptions.IncludeUsage = true
	if o.compatible {
		q.MaxTokens = c.maxTokens
	} else {
		q.MaxCompletion = c.maxTokens
	}
	for _, tool := range c.tools {
		t := openaiTool{Type: "function"}
		t.Function.Name, t.Function.Description, t.Function.Parameters = tool.Name, tool.Description, schemaOf(tool)
		q.Tools = append(q.Tools, t)
	}
	for _, r := range c.rounds {
		q.Messages = append(q.Messages, r.message.(openaiMessage))
		for _, x := range r.results {
			q.Messages = append(q.Messages, openaiMessage{Role: "tool", Content: &x.text, ToolCallID: x.call})
		}
		if r.aside != "" {
			q.Messages = append(q.Messages, openaiMessage{Role: "user", Content: &r.aside})
		}
	}
	return marshal(q)
}

func (openai) goesOn() bool { return false }

func (openai) newListener(a *answer) listener {
	return &openaiListener{answer: a, callAt: map[int]*call{}}
}

// An openaiListener decodes a chat completion.
type openaiListener struct {
	answer *answer
	callAt map[int]*call // the newest call of each index
}

// An openaiSaid is a piece of a message. Servers use different fields for reasoning.
type openaiSaid struct {
	Content   string       `json:"content"`
	Refusal   string       `json:"refusal"`
	Reasoning string       `json:"reasoning"`         // Ollama, OpenRouter
	Thought   string       `json:"reasoning_content"` // vLLM, llama.cpp, DeepSeek
	ToolCalls []openaiCall `json:"tool_calls"`
}

type openaiChunk struct {
	Choices []struct {
		Delta        openaiSaid `json:"delta"`
		Message      openaiSaid `json:"message"`
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage provider.Reported[openaiUsage] `json:"usage"`
	Error *problem                       `json:"error"`
}

type openaiUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (l *openaiListener) handleEvent(data []byte) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		return io.EOF
	}
	return l.handleWhole(data)
}

// handleWhole takes an answer, or an event of one. The two differ in one field.
func (l *openaiListener) handleWhole(data []byte) error {
	var c openaiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if c.Error != nil {
		return failureOf(statusOf(c.Error), c.Error)
	}
	if u := c.Usage.Value; c.Usage.Given {
		f := provider.Figures{Unusable: c.Usage.Unusable}
		in, out := f.Count(u.Prompt), f.Count(u.Completion)
		cached := min(f.Count(u.Details.Cached), in)
		l.answer.tokens, l.answer.unusable = providerkind.Tokens{In: in - cached, Out: out, Read: cached}, f.Unusable
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := &c.Choices[0]
	for _, said := range []*openaiSaid{&choice.Delta, &choice.Message} {
		if err := l.addDelta(said); err != nil {
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
		if l.answer.stop == stopNot {
			l.answer.stop = stopDone
		}
	}
	return nil
}

// addDelta takes a piece of an answer. Pieces of a tool call are put together by their index and
// id.
func (l *openaiListener) addDelta(s *openaiSaid) error {
	if s.Refusal != "" {
		l.answer.stop = stopRefusal
	}
	for _, said := range []struct {
		kind swarm.DeltaKind
		text string
	}{{swarm.DeltaThinking, s.Reasoning}, {swarm.DeltaThinking, s.Thought}, {swarm.DeltaText, s.Content}, {swarm.DeltaText, s.Refusal}} {
		if err := l.answer.show(said.kind, said.text); err != nil {
			return err
		}
	}
	for i := range s.ToolCalls {
		piece := &s.ToolCalls[i]
		c := l.callAt[piece.Index]
		if c == nil || piece.ID != "" && c.id != "" && piece.ID != c.id { // some servers number every call 0
			c = &call{}
			l.callAt[piece.Index] = c
			l.answer.calls = append(l.answer.calls, c)
		}
		if piece.ID != "" {
			c.id = piece.ID
		}
		if piece.Function.Name != "" {
			c.name = piece.Function.Name
		}
		c.args += piece.Function.Arguments
	}
	return nil
}

// message returns the assistant's message with its calls.
func (l *openaiListener) message() (any, error) {
	m := openaiMessage{Role: "assistant"}
	if text := l.answer.text.String(); text != "" {
		m.Content = &text
	}
	for i, c := range l.answer.calls {
		if c.id == "" {
			c.id = "call_" + strconv.Itoa(i+1)
		}
		x := openaiCall{ID: c.id, Type: "function"}
		x.Function.Name, x.Function.Arguments = c.name, string(validArguments(c.args))
		m.ToolCalls = append(m.ToolCalls, x)
	}
	return m, nil
}

// statusOf returns the status that an error would have had before the stream began.
func statusOf(p *problem) int {
	if n, err := strconv.Atoi(string(bytes.Trim(p.Code, `"`))); err == nil && n >= 400 && n < 600 {
		return n
	}
	for word, status := range map[string]int{"overloaded_error": 529, "rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
		"authentication_error": 401, "permission_error": 403, "not_found_error": 404, "invalid_request_error": 400, "request_too_large": 413} {
		if p.is(word) {
			return status
		}
	}
	return 500
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
