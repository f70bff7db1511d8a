package model

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"swarm"
	"swarm/internal/provider"
)

// anthropic is Anthropic's Messages API.
type anthropic struct{}

// defaultMaxTokens limits an answer when the file does not say how long it may be. The API requires
// a limit.
const defaultMaxTokens = 32_000

func (anthropic) signRequest(h http.Header, key string) {
	h.Set("Anthropic-Version", "2023-06-01")
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

type anthropicAsk struct {
	Model       string             `json:"model"`
	MaxTokens   int64              `json:"max_tokens"`
	Temperature *float64           `json:"temperature,omitempty"`
	Stream      bool               `json:"stream"`
	Thinking    *anthropicThinking `json:"thinking,omitempty"`
	Output      *anthropicOutput   `json:"output_config,omitempty"`
	ServiceTier string             `json:"service_tier,omitempty"`
	System      []block            `json:"system,omitempty"`
	Tools       []anthropicTool    `json:"tools,omitempty"`
	Messages    []anthropicMessage `json:"messages"`
}

type anthropicThinking struct {
	Type   string `json:"type"`
	Budget int64  `json:"budget_tokens,omitempty"`
}

type anthropicOutput struct {
	Effort string `json:"effort"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       *cacheControl   `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// A block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"` // empty but present where only the signature stands for it
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"`
	Source    *imageSource    `json:"source,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`
}

// An imageSource is the content of an image.
type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // in base64
}

type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{"ephemeral"}

// encodeRequest encodes the whole conversation. Four places are marked for the cache, as many as the
// API takes, so that the next request only pays for what is new: the tools, the stable part of the
// first prompt, the newest message, and the one that was the newest in the request before.
func (anthropic) encodeRequest(c *conversation) ([]byte, error) {
	q := anthropicAsk{Model: c.model, MaxTokens: c.maxTokens, Temperature: c.sentTemperature(), Stream: true}
	if q.MaxTokens == 0 {
		q.MaxTokens = defaultMaxTokens
	}
	q.ServiceTier = c.serviceTier
	if c.effort != "" {
		q.Output = &anthropicOutput{c.effort}
	}
	if c.thinking != "" {
		q.Thinking = &anthropicThinking{Type: c.thinking}
		if tokens, err := strconv.ParseInt(c.thinking, 10, 64); err == nil {
			q.Thinking = &anthropicThinking{"enabled", tokens}
		}
	}
	for _, tool := range c.tools {
		q.Tools = append(q.Tools, anthropicTool{Name: tool.Name, Description: tool.Description, InputSchema: schemaOf(tool)})
	}
	if c.system != "" { // the same in all iterations of an agent
		q.System = []block{{Type: "text", Text: c.system}}
		if !c.leftOut[optCache] {
			q.System[0].Cache = ephemeral
		}
	}
	var told [][]block
	for i := range c.messages {
		m := &c.messages[i]
		if m.Role == swarm.RoleAssistant {
			q.Messages = append(q.Messages, anthropicMessage{m.Role, anthropicSaid(c, m)})
			continue
		}
		told = append(told, anthropicTold(c, m))
		q.Messages = append(q.Messages, anthropicMessage{m.Role, told[len(told)-1]})
	}
	// Writing to the cache costs more than reading once, so a prompt that is sent only once is not
	// marked.
	if c.marksCache() {
		if n := len(q.Tools); n > 0 {
			q.Tools[n-1].Cache = ephemeral
		}
		for _, blocks := range told[max(0, len(told)-2):] {
			blocks[len(blocks)-1].Cache = ephemeral
		}
	}
	if begin := c.sentPrefill(); begin != "" {
		q.Messages = append(q.Messages, anthropicMessage{swarm.RoleAssistant, []block{{Type: "text", Text: begin}}})
	}
	return marshal(q)
}

// marksCache says whether places of the conversation are marked for the cache.
func (c *conversation) marksCache() bool { return c.cached && !c.leftOut[optCache] }

// anthropicContent returns the content of a result: its text, or blocks if it has images.
func anthropicContent(x *swarm.ToolResult) any {
	if len(x.Images) == 0 {
		return x.Text
	}
	blocks := []block{{Type: "text", Text: x.Text}}
	for _, i := range x.Images {
		blocks = append(blocks, block{Type: "image", Source: &imageSource{"base64", i.MIMEType, i.Data}})
	}
	return blocks
}

// anthropicTold encodes a message of ours.
func anthropicTold(c *conversation, m *swarm.ChatMessage) (blocks []block) {
	for _, r := range m.Results {
		blocks = append(blocks, block{Type: "tool_result", ToolUseID: anthropicID(r.Call), Content: anthropicContent(&r), IsError: r.Failed})
	}
	text := m.Text
	if c.marksCache() && m.Stable > 0 && m.Stable < len(text) {
		blocks = append(blocks, block{Type: "text", Text: text[:m.Stable], Cache: ephemeral})
		text = text[m.Stable:]
	}
	if text != "" || len(blocks) == 0 {
		blocks = append(blocks, block{Type: "text", Text: text})
	}
	return blocks
}

// anthropicSaid encodes a message of the model.
func anthropicSaid(c *conversation, m *swarm.ChatMessage) any {
	if raw := c.rawOf(m); raw != nil {
		return raw
	}
	blocks := []block{}
	if m.Text != "" {
		blocks = append(blocks, block{Type: "text", Text: m.Text})
	}
	for _, x := range m.Calls {
		blocks = append(blocks, block{Type: "tool_use", ID: anthropicID(x.ID), Name: x.Name, Input: validArguments(x.Args)})
	}
	return blocks
}

// anthropicID returns the id of a call as the API takes it: letters, digits, _ and -. A model of
// another vendor, which did an earlier turn, may have chosen other characters.
func anthropicID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, id)
}

func (anthropic) goesOn() bool { return true }

func (anthropic) refused(c *conversation, words string) option {
	switch {
	case c.prefill != "" && strings.Contains(words, "prefill"):
		return optPrefill
	case strings.Contains(words, "cache_control") && refusesField(words):
		return optCache
	}
	return ""
}

func (anthropic) newListener(a *answer) listener { return &anthropicListener{answer: a} }

// An anthropicListener decodes an answer of the Messages API.
type anthropicListener struct {
	answer *answer
	blocks []*block
	inputs []string // by block that calls a tool: its arguments so far
}

// An anthropicUsage has pointers because an absent count and a count of 0 differ.
type anthropicUsage struct {
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`
	Read   *int64 `json:"cache_read_input_tokens"`
	Wrote  *int64 `json:"cache_creation_input_tokens"`
}

// setTokens takes over the counts. Later counts include all before.
func (l *anthropicListener) setTokens(r *provider.Reported[anthropicUsage]) {
	k, u := &l.answer.tokens, &r.Value
	f := provider.Figures{Unusable: l.answer.unusable || r.Unusable}
	for _, n := range []struct {
		to   *int64
		from *int64
	}{{&k.In, u.Input}, {&k.Out, u.Output}, {&k.Read, u.Read}, {&k.Wrote, u.Wrote}} {
		if n.from != nil {
			*n.to = f.Count(*n.from)
		}
	}
	l.answer.unusable = f.Unusable
}

// handleEvent takes one event of the stream. Blocks arrive in pieces and are put together by their
// index.
func (l *anthropicListener) handleEvent(data []byte) error {
	var e struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Model json.RawMessage                   `json:"model"`
			Usage provider.Reported[anthropicUsage] `json:"usage"`
		} `json:"message"`
		Block block `json:"content_block"`
		Delta struct {
			Type       string `json:"type"`
			Text       string `json:"text"`
			Thinking   string `json:"thinking"`
			Signature  string `json:"signature"`
			Partial    string `json:"partial_json"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage provider.Reported[anthropicUsage] `json:"usage"`
		Error json.RawMessage                   `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	l.answer.heard = l.answer.heard || e.Type != ""
	if e.Type == "error" || !isNull(e.Error) {
		return failureIn(data)
	}
	switch e.Type {
	case "message_start":
		l.answer.model = decodeText(e.Message.Model)
		l.setTokens(&e.Message.Usage)
	case "content_block_start":
		return l.addBlock(&e.Block)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= len(l.blocks) {
			return nil
		}
		b := l.blocks[e.Index]
		b.Text += e.Delta.Text
		if b.Thinking != nil {
			*b.Thinking += e.Delta.Thinking
		}
		b.Signature += e.Delta.Signature
		l.inputs[e.Index] += e.Delta.Partial
		if err := l.answer.show(swarm.DeltaThinking, e.Delta.Thinking); err != nil {
			return err
		}
		return l.answer.show(swarm.DeltaText, e.Delta.Text)
	case "message_delta":
		l.setTokens(&e.Usage)
		if e.Delta.StopReason != "" {
			l.setStop(e.Delta.StopReason)
		}
	case "message_stop":
		return io.EOF
	}
	return nil
}

// addBlock begins a block. In a whole answer a tool call already has its input; in a stream the
// input begins as an empty object.
func (l *anthropicListener) addBlock(b *block) error {
	l.blocks, l.inputs = append(l.blocks, b), append(l.inputs, "")
	if b.Type == "tool_use" && string(b.Input) != "{}" && string(b.Input) != "null" {
		l.inputs[len(l.inputs)-1] = string(b.Input)
	}
	if b.Type == "thinking" {
		if b.Thinking == nil {
			b.Thinking = new(string)
		}
		if err := l.answer.show(swarm.DeltaThinking, *b.Thinking); err != nil {
			return err
		}
	}
	return l.answer.show(swarm.DeltaText, b.Text)
}

// setStop stores why the answer ended. An unknown reason counts as a normal end.
func (l *anthropicListener) setStop(reason string) {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		l.answer.stop = stopLength
	case "refusal":
		l.answer.stop = stopRefusal
	default:
		l.answer.stop = stopDone
	}
}

func (l *anthropicListener) handleWhole(data []byte) error {
	var m struct {
		Model      json.RawMessage                   `json:"model"`
		Content    []block                           `json:"content"`
		StopReason string                            `json:"stop_reason"`
		Usage      provider.Reported[anthropicUsage] `json:"usage"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	if m.Content == nil && problemOf(data) != nil {
		return failureIn(data)
	}
	l.answer.model = decodeText(m.Model)
	l.setTokens(&m.Usage)
	for i := range m.Content {
		if err := l.addBlock(&m.Content[i]); err != nil {
			return err
		}
	}
	if m.StopReason != "" {
		l.setStop(m.StopReason)
	}
	return nil
}

// message returns the assistant's message and collects its calls.
func (l *anthropicListener) message() (swarm.ChatMessage, error) {
	said := []*block{}
	for i, b := range l.blocks {
		switch b.Type {
		case "text":
			if b.Text == "" {
				continue
			}
		case "tool_use":
			l.answer.calls = append(l.answer.calls, swarm.ToolCall{ID: b.ID, Name: b.Name, Args: l.inputs[i]})
			b.Input = validArguments(l.inputs[i])
		case "thinking", "redacted_thinking":
		default:
			continue
		}
		said = append(said, b)
	}
	return l.answer.withRaw(said, anthropicSaid), nil
}
