package swarm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A ChatMessage is one message of a conversation with a model over HTTP: what the model is told, or
// what it says. No vendor's API decides its form, so a conversation can go on at another server.
type ChatMessage struct {
	Role    string       `json:"role"` // RoleUser or RoleAssistant
	Text    string       `json:"text,omitempty"`
	Calls   []ToolCall   `json:"calls,omitempty"`   // of the assistant
	Results []ToolResult `json:"results,omitempty"` // of the user: what the calls before it gave; Text stands beside them
	// IsOutput says that the text is the output of the turn, which the log has already.
	IsOutput bool `json:"output,omitempty"`
	// Raw is the assistant's message as its API has it, if that is more than text and calls:
	// signatures of thoughts, encrypted reasoning. Only the server and model of From want it back.
	Raw  json.RawMessage `json:"raw,omitempty"`
	From string          `json:"from,omitempty"`
	// Stable is how many bytes at the beginning of the text are the same in other conversations of
	// the agent, so that a server can cache them.
	Stable int `json:"-"`
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// A ToolCall is a tool that a model calls.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"` // as the model has written them: they need not be JSON
}

// A ToolResult is what a call gave.
type ToolResult struct {
	Call   string `json:"call"` // its id
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
	// Images are shown with the result, in the turn itself and in later ones.
	Images []ToolImage `json:"images,omitempty"`
}

// An Exchange is what a turn has added to a session whose messages the log keeps.
type Exchange struct {
	Sent     Hash  `json:"sent"`              // the prompt, or the part of it that was new to the session
	Stable   int   `json:"stable,omitempty"`  // [ChatMessage.Stable] of that text
	Messages Hash  `json:"messages"`          // the messages after it: a list of [ChatMessage]
	Bytes    int64 `json:"bytes"`             // of both
	Results  int64 `json:"results,omitempty"` // the part of Bytes that results of tools are, as far as it can be left out
	// Line is the length of a line that has all words of the turn, without long results of tools. 0 =
	// they are too many.
	Line int64 `json:"line,omitempty"`
	// LeftOut is how many results of tools were left out of later requests of the turn itself.
	LeftOut int `json:"left_out,omitempty"`
}

// A History says how much of its session a turn was sent. The newest turns are sent whole, those
// before them without the results of their tools, and the oldest ones as one line each.
type History struct {
	Turns   int   `json:"turns"`             // of the session so far
	Short   int   `json:"short,omitempty"`   // the oldest of them, whose tool results are left out
	Dropped int   `json:"dropped,omitempty"` // the oldest of those: one line of each is sent
	Tokens  int64 `json:"tokens"`            // of what is sent; estimated
}

// ContextLimits say how much of its session an agent is sent with each turn. 0 = the default.
type ContextLimits struct {
	Tokens int64 `json:"tokens,omitempty"` // at most, estimated
	Keep   int   `json:"keep,omitempty"`   // the newest turns, which are shortened last
}

// NoSession is the session of an agent whose turns know nothing of each other.
const NoSession = "none"

// MapTexts returns the message with each of its texts replaced by f, such as one that removes secrets.
// A raw message that f changes would not be accepted any more, so it is left out.
func (m ChatMessage) MapTexts(f func(string) string) ChatMessage {
	m.Text = f(m.Text)
	m.Calls = append([]ToolCall(nil), m.Calls...)
	for i := range m.Calls {
		m.Calls[i].Args = f(m.Calls[i].Args)
	}
	m.Results = append([]ToolResult(nil), m.Results...)
	for i := range m.Results {
		m.Results[i].Text = f(m.Results[i].Text)
	}
	if len(m.Raw) > 0 && f(string(m.Raw)) != string(m.Raw) {
		m.Raw = nil
	}
	return m
}

// WithoutImages returns the result without its images. The text says that they are not shown.
func (r ToolResult) WithoutImages() ToolResult {
	if len(r.Images) > 0 {
		r.Text, r.Images = strings.ReplaceAll(r.Text, ImageShown, imageGone), nil
	}
	return r
}

// ShortResult is how many bytes the text of a result may have that is never left out.
const ShortResult = 200

// Shortened returns the result as it is sent when there is no room for all of it.
func (r ToolResult) Shortened() ToolResult {
	if r = r.WithoutImages(); len(r.Text) > ShortResult {
		r.Text = fmt.Sprintf("[The result had %d bytes. It was left out to save room. Make the same call again if you need it.]", len(r.Text))
	}
	return r
}

// ImagesSize returns the size of the images in bytes of text that cost a model as much. The cost of
// an image does not depend on its bytes.
func (r *ToolResult) ImagesSize() int64 { return int64(len(r.Images)) * imageTokens * 4 }

// imageTokens is the number of tokens that vendors count for a large image.
const imageTokens = 1600

// Size returns how many bytes of the message a model reads.
func (m *ChatMessage) Size() (n int64) {
	n = int64(len(m.Text) + len(m.Raw))
	for _, c := range m.Calls {
		n += int64(len(c.Name) + len(c.Args))
	}
	for _, r := range m.Results {
		n += int64(len(r.Text)) + r.ImagesSize()
	}
	return n
}

// ReadMessages reads the messages that a turn has added to its session after its prompt. text finds a
// text by its hash, and output is that of the turn.
func ReadMessages(text func(Hash) ([]byte, error), x Exchange, output Hash) (all []ChatMessage, err error) {
	data, err := text(x.Messages)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, Errorf(Storage, "the messages of a turn cannot be read: %w", err)
	}
	for i := range all {
		if all[i].IsOutput {
			said, err := text(output)
			if err != nil {
				return nil, err
			}
			all[i].Text = string(said)
		}
	}
	return all, nil
}
