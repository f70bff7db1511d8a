package coding

import (
	"encoding/json"
	"strings"
)

// A content is a message in the form that Anthropic and MCP share: a text, or a list of blocks.
type content []block

type block struct {
	Type      string
	Text      string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage // of a tool's result: again a content
}

// UnmarshalJSON keeps the blocks that it understands, because a tool's result may hold anything.
func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*c = content{{Type: "text"}}
		return json.Unmarshal(data, &(*c)[0].Text)
	}
	if json.Unmarshal(data, (*[]block)(c)) == nil {
		return nil
	}
	*c = nil
	var blocks []json.RawMessage
	_ = json.Unmarshal(data, &blocks)
	for _, raw := range blocks {
		var b block
		if json.Unmarshal(raw, &b) == nil {
			*c = append(*c, b)
		}
	}
	return nil
}

func (c content) text() string {
	var b strings.Builder
	for _, block := range c {
		b.WriteString(block.Text)
	}
	return b.String()
}

// resultText returns the text of a tool's result.
func (b block) resultText() string {
	var c content
	_ = json.Unmarshal(b.Content, &c)
	return c.text()
}
