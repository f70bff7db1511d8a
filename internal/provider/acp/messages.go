package acp

import (
	"encoding/json"
	"strings"

	"swarm/internal/provider"
)

// The messages of the protocol, as far as we read and write them. Unknown fields are ignored,
// because agents extend the protocol.

type object map[string]any

// An initializeResult is the answer to initialize.
type initializeResult struct {
	Version int `json:"protocolVersion"`
	Can     struct {
		Load bool `json:"loadSession"`
		MCP  struct {
			HTTP bool `json:"http"`
		} `json:"mcpCapabilities"`
		Session struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Info struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	Auth []struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"authMethods"`
}

// A sessionInfo is the answer to session/new, session/load and session/resume. Newer agents offer
// models and modes as options, older ones by fields of their own, many by both.
type sessionInfo struct {
	ID      string   `json:"sessionId"`
	Options []option `json:"configOptions"`
	Models  struct {
		Current string `json:"currentModelId"`
		All     []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	Modes struct {
		Current string `json:"currentModeId"`
		All     []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
}

// An option is a setting of a session. Its category says which: model, mode.
type option struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Current  any             `json:"currentValue"`
	Choices  json.RawMessage `json:"options"` // choices, or groups of choices
}

// A choice is one of an option's values, or a group of them.
type choice struct {
	Value   string   `json:"value"`
	Choices []choice `json:"options"`
}

// values returns all values of an option, whether or not they are in groups.
func (o option) values() (values []string) {
	var choices []choice
	if json.Unmarshal(o.Choices, &choices) != nil {
		return nil
	}
	for _, c := range choices {
		if c.Value != "" {
			values = append(values, c.Value)
		}
		for _, inner := range c.Choices {
			values = append(values, inner.Value)
		}
	}
	return values
}

// A promptResult is the answer to session/prompt.
type promptResult struct {
	Stop  string                    `json:"stopReason"`
	Usage provider.Reported[tokens] `json:"usage"`
	Meta  provider.Reported[struct {
		Quota struct { // Gemini CLI's form of the usage
			Tokens struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	}] `json:"_meta"`
}

// tokens is the usage of one turn. Tokens read from and written to the cache are not part of the
// input. Whether thoughts are part of the output differs, and the total tells it.
type tokens struct {
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Thought int64 `json:"thoughtTokens"` // a part of the output, or beside it
	Total   int64 `json:"totalTokens"`
	Read    int64 `json:"cachedReadTokens"`
	Wrote   int64 `json:"cachedWriteTokens"`
}

// An update is something that happens in a session.
type update struct {
	Kind    string `json:"sessionUpdate"`
	Message string `json:"messageId"`
	toolCall
	Cost provider.Reported[struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	}] `json:"cost"`
}

// A toolCall describes a tool call. Each message about the call carries only some of it.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	Content   json.RawMessage `json:"content"` // the contents of a tool call, or one block of a message
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Meta struct { // agents that tell a tool's name beside what it is doing
		Tool   string `json:"toolName"`
		Claude struct {
			Tool string `json:"toolName"`
		} `json:"claudeCode"`
	} `json:"_meta"`
}

// A block is a piece of a message.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Resource struct {
		Text string `json:"text"`
	} `json:"resource"`
}

// textOf returns the text of a block, or "" for a block without text.
func textOf(content json.RawMessage) string {
	var b block
	if json.Unmarshal(content, &b) != nil {
		return ""
	}
	return b.Text
}

// A toolContent is a result of a tool: a text, or a file that it has changed.
type toolContent struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
	Path    string `json:"path"`
}

// contents returns the text in a tool call's content, and the files.
func (c toolCall) contents() (text string, files []string) {
	var list []toolContent
	if json.Unmarshal(c.Content, &list) != nil {
		return "", nil
	}
	var b strings.Builder
	for _, m := range list {
		switch m.Type {
		case "content":
			b.WriteString(m.Content.Text + m.Content.Resource.Text)
		case "diff":
			files = append(files, m.Path)
		}
	}
	return b.String(), files
}

// A permissionRequest asks for a permission.
type permissionRequest struct {
	Session string   `json:"sessionId"`
	Tool    toolCall `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	} `json:"options"`
}
