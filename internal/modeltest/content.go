package modeltest

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
)

// A content is a message: one text, or a list of parts.
type content []part

type part struct {
	Type, Text string
	Content    content // of a tool's result
}

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(data, (*[]part)(c))
}

func (c content) texts() (texts []string) {
	for _, p := range c {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// clientsOwn are the beginnings of parts that a client adds to the user's message.
var clientsOwn = []string{
	"<system-reminder>",
	"<environment_context>",
	"<user_instructions>",
	"<permissions",
	"# AGENTS.md instructions",
	"<session_context>",
}

// addSaid adds a message of the user, without what the client added.
func (r *Request) addSaid(texts ...string) {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		return slices.ContainsFunc(
			clientsOwn,
			func(begin string) bool { return strings.HasPrefix(strings.TrimSpace(text), begin) },
		)
	})
	if said := strings.Join(texts, ""); said != "" {
		r.Said = append(r.Said, said)
	}
}

// offered gives calls the names under which the client offers the tools, and ids where they have
// none.
func offered(calls []Call, tools []string) []Call {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Name = offeredAs(calls[i].Name, tools)
		if calls[i].ID == "" {
			calls[i].ID = "call_" + rand.Text()
		}
	}
	return calls
}

// offeredAs finds a tool by its own name after that of its server: mcp__swarm__add, swarm_add or
// mcp__swarm/add for add. A tool that is not offered is called anyway, and the client refuses it.
func offeredAs(name string, tools []string) string {
	best := ""
	for _, tool := range tools {
		if tool == name {
			return name
		}
		server, found := strings.CutSuffix(tool, name)
		if found && strings.ContainsAny(server[len(server)-1:], "_/.-") && (best == "" || len(tool) < len(best)) {
			best = tool
		}
	}
	if best == "" {
		return name
	}
	return best
}
