package coding

import (
	"encoding/json"
	"strings"
)

// A content is what somebody says, in the form that Anthropic and MCP have in common: a text, or a list of blocks.
type content []block

type block struct {
	Type      string
	Text      string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage // of a tool's result: a content again
}

// UnmarshalJSON takes what it understands: what a tool says may be anything.
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

// said is what a tool's result holds.
func (b block) said() string {
	var c content
	_ = json.Unmarshal(b.Content, &c)
	return c.text()
}
