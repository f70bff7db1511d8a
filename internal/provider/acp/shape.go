package acp

import (
	"encoding/json"
	"strings"
)

// What the protocol's messages look like, as far as we read and write them. Whatever else stands in them is left alone: agents add
// to the protocol, and are understood all the same.

type object map[string]any

// greeting is the answer to initialize.
type greeting struct {
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

// A conversation is the answer to session/new, session/load and session/resume.
type conversation struct {
	ID      string   `json:"sessionId"`
	Options []option `json:"configOptions"`
	Models  *struct {
		Current string `json:"currentModelId"`
		All     []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
}

// An option is something about a session that can be chosen: of the category model, the model.
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

// An ending is the answer to session/prompt.
type ending struct {
	Stop  string  `json:"stopReason"`
	Usage *tokens `json:"usage"`
	Meta  struct {
		Quota struct { // Gemini's way to say it
			Tokens struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// tokens are those of one turn. What was read from the cache and what was written to it are not in the input.
type tokens struct {
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Thought int64 `json:"thoughtTokens"`
	Read    int64 `json:"cachedReadTokens"`
	Wrote   int64 `json:"cachedWriteTokens"`
}

// An update is something that happens in a session.
type update struct {
	Kind    string `json:"sessionUpdate"`
	Message string `json:"messageId"`
	toolCall
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
}

// A toolCall is what is told of a tool that the agent uses, or wants to: some of it now, some later.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	Content   json.RawMessage `json:"content"` // a list of what the tool has made; of a message, a block of it
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Meta struct {
		Claude struct {
			Tool string `json:"toolName"`
		} `json:"claudeCode"`
	} `json:"_meta"`
}

// A block is a piece of what is said.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Resource struct {
		Text string `json:"text"`
	} `json:"resource"`
}

func textOf(content json.RawMessage) string {
	var b block
	if json.Unmarshal(content, &b) != nil {
		return ""
	}
	return b.Text
}

// made is what a tool has made: text, or a file that it has changed.
type made struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
	Path    string `json:"path"`
}

// made reads a tool's content: the text in it, and the files.
func (c toolCall) made() (text string, files []string) {
	var list []made
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

// A permission is asked for.
type permissionRequest struct {
	Session string   `json:"sessionId"`
	Tool    toolCall `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	} `json:"options"`
}
