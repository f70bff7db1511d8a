package view

import (
	"encoding/json"
	"slices"
	"strings"

	"swarm"
)

// subjects are the members of a tool's input that say what the call is about, the best first. One of
// them is enough for a person who follows a run; an approval shows all of the input.
var subjects = []string{
	"command", "cmd", "file_path", "notebook_path", "path", "url", "pattern", "query", "to", "name", "topic", "question", "help_description", "goal", "ref", "description", "text",
	"message", "summary",
}

const (
	mostSubject = 160 // characters
	mostMembers = 3   // of an input without a subject
)

// ToolName returns the name of a tool without that of our own MCP server.
func ToolName(name string) string { return strings.TrimPrefix(name, "mcp__swarm__") }

// DescribeTool returns in one line which tool an agent uses, and on what: Edit calc.py, Bash go test
// ./..., send_handoff @coder.
func DescribeTool(u *swarm.ToolUse) string {
	name := ToolName(u.Name)
	about := subject(u.Input)
	switch {
	case about == "":
		return name
	case strings.HasPrefix(name, "send_"):
		return name + " to @" + strings.TrimPrefix(about, "@")
	}
	return name + " " + about
}

// subject returns what a tool's input is about.
func subject(body []byte) string {
	if len(body) == 0 || body[0] != '{' {
		return input(body)
	}
	var names, texts []string
	m := members{rest: body}
	for m.next() {
		names, texts = append(names, value([]byte(`"`+string(m.key)+`"`))), append(texts, words(m.value))
	}
	if m.bad {
		return input(body)
	}
	for _, key := range subjects {
		if i := slices.Index(names, key); i >= 0 && texts[i] != "" {
			return shorten(visible(texts[i]), mostSubject)
		}
	}
	var rest []string
	for i, name := range names {
		if i == mostMembers {
			rest = append(rest, "…")
			break
		}
		rest = append(rest, visible(name)+"="+shorten(visible(texts[i]), mostOther))
	}
	return strings.Join(rest, " ")
}

// words returns a value as text. A command line in parts is one line, without the shell that runs it.
func words(body []byte) string {
	var parts []string
	if json.Unmarshal(body, &parts) != nil {
		return value(body)
	}
	if len(parts) == 3 && strings.HasSuffix(parts[0], "sh") && strings.HasPrefix(parts[1], "-") {
		return parts[2]
	}
	return strings.Join(parts, " ")
}
