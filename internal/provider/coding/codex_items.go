package coding

import (
	"encoding/json"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
)

// codexItems reports the work of Codex in one turn. `codex exec` and `codex app-server` send the
// same items in two spellings.
type codexItems struct {
	*turn
	lastMessage string          // the agent's last message
	streamed    string          // the id of the message whose text is being shown in pieces
	denied      *swarm.Error    // the first permission that was refused, and not by a person
	decided     map[string]bool // items about which Codex has asked, by id
}

// A codexItem is one thing that the agent does. Its type says which fields are set.
type codexItem struct {
	ID, Type, Text, Message, Status string
	Summary                         []string
	Command                         string
	Output                          string `json:"aggregated_output"`
	ServerOutput                    string `json:"aggregatedOutput"`
	Query                           string
	Server, Tool                    string
	Arguments                       json.RawMessage
	Changes                         []codexChange
	Error                           *struct{ Message string }
	Result                          *struct{ Content content }
}

type codexChange struct {
	Path string    `json:"path"`
	Kind codexVerb `json:"kind,omitempty"`
	Diff string    `json:"diff,omitempty"`
}

// A codexVerb says what is done to a file: add, update, delete.
type codexVerb string

// UnmarshalJSON reads a word, or an object with the word as its type.
func (v *codexVerb) UnmarshalJSON(data []byte) error {
	var typed struct{ Type string }
	if json.Unmarshal(data, &typed) == nil {
		*v = codexVerb(typed.Type)
		return nil
	}
	return json.Unmarshal(data, (*string)(v))
}

// codexKinds maps the known types of items, in both spellings. Items of other types may have any
// form.
var codexKinds = map[string]string{
	"agent_message": "message", "agentMessage": "message",
	"command_execution": "command", "commandExecution": "command",
	"file_change": "change", "fileChange": "change",
	"mcp_tool_call": "mcp", "mcpToolCall": "mcp",
	"web_search": "search", "webSearch": "search",
	"reasoning": "reasoning", "error": "error",
}

// handleItem reports one item. Reasoning, and a message that was not streamed, are shown when they
// are complete.
func (e *codexItems) handleItem(i *codexItem, done bool) {
	switch codexKinds[i.Type] {
	case "message":
		if !done {
			return
		}
		if e.lastMessage = i.Text; e.streamed != i.ID || i.ID == "" {
			e.endLine()
			e.showText(i.Text)
		}
		e.streamed = ""
	case "reasoning":
		if done {
			e.showThinking(i.Text + strings.Join(i.Summary, "\n\n"))
		}
	case "error":
		e.writeStderr(i.Message + "\n")
	case "command", "change", "search", "mcp":
		e.reportTool(i, done)
	}
	if codexKinds[i.Type] != "change" || !done || i.Status != "completed" {
		return
	}
	for _, c := range i.Changes {
		e.reportFile(c.Path)
	}
}

// call returns the name of the tool that an item uses, and its input.
func (i *codexItem) call() (name string, input any) {
	switch codexKinds[i.Type] {
	case "command":
		return "shell", object{"command": i.Command}
	case "change":
		return "file_change", object{"changes": i.Changes}
	case "search":
		return "web_search", object{"query": i.Query}
	}
	return "mcp__" + i.Server + "__" + i.Tool, i.Arguments
}

// An object is encoded as a JSON object.
type object map[string]any

// reportTool reports a tool call, and its result when the call is done. The first refused
// permission fails the turn at its end. If Codex asked for that permission, the answer decides
// instead.
func (e *codexItems) reportTool(i *codexItem, done bool) {
	name, input := i.call()
	b, _ := json.Marshal(input)
	e.startTool(i.ID, name, b, "")
	if !done {
		return
	}
	output := i.Output + i.ServerOutput
	if i.Result != nil {
		output = i.Result.Content.text()
	}
	if i.Error != nil {
		output += i.Error.Message
	}
	e.endTool(i.ID, output, i.Status == "failed" || i.Status == "declined" || i.Error != nil)
	if e.denied != nil || e.decided[i.ID] {
		return
	}
	switch {
	case i.Error != nil && strings.Contains(i.Error.Message, "approval"):
		e.denied = e.deniedError(name, string(b), "mcp__"+i.Server)
	case i.Status == "declined":
		e.denied = e.sandboxError(name, string(b), "allow it in the rules of Codex (`codex execpolicy` checks them)")
	}
}

// sandboxError makes the error of a turn in which a call was refused that no entry of `tools` could
// allow.
func (e *codexItems) sandboxError(name, input, hint string) *swarm.Error {
	return swarm.Errorf(swarm.Denied, "Codex was not allowed to use %s%s", name, excerpt.Said(e.redactor.String(input))).
		WithHint("%s, or give this work to another agent", hint)
}

// A codexUsage is the total usage of a session. Codex counts reasoning as a part of the output.
type codexUsage struct {
	Input  int64 `json:"input_tokens"`
	Cached int64 `json:"cached_input_tokens"`
	Output int64 `json:"output_tokens"`
}

// reportUsage reports the usage of the turn: the total of the session, less the total before the
// turn.
func (e *codexItems) reportUsage(u codexUsage, unusable bool) {
	f := provider.Figures{Unusable: unusable}
	in, out, cached := f.Count(u.Input), f.Count(u.Output), f.Count(u.Cached)
	total := f.Usage(in, out, cached, 0)
	e.setSessionTotal(total)
	if before, known := e.spentBefore(); known {
		e.setUsage(total.Minus(before))
	}
}

// finish ends a turn that Codex has completed.
func (e *codexItems) finish() {
	if e.denied == nil {
		e.succeed(e.lastMessage)
		return
	}
	e.setOutput(e.lastMessage)
	e.fail(e.denied)
}
