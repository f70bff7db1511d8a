// Package agentfile reads files that describe an agent, as Claude Code keeps them in .claude/agents:
// Markdown with front matter.
//
//	---
//	name: reviewer
//	description: Reviews changes before they are merged
//	---
//	You review changes. …
package agentfile

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/yamlfile"
)

// Folder is where the files are, in a project and in a home folder.
const Folder = ".claude/agents"

// A Role is what a file says of an agent. Other keys, such as tools and model, are Claude Code's own.
type Role struct {
	Name        string
	Description string
	Body        string
	Line        int // where the body begins in the file
}

const hint = "begin the file with: --- name: reviewer, description: What it does, --- on lines of their own"

// Parse reads a file. Its name is for messages.
func Parse(file string, src []byte) (Role, *swarm.Error) {
	wrong := func(line, column int, msg string) *swarm.Error {
		e := &swarm.Error{Kind: swarm.BadInput, File: file, Line: line, Column: column, Msg: msg}
		return e.WithHint("%s", hint)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return Role{}, wrong(1, 1, "the file has no front matter: its first line is not ---")
	}
	front, body, found := strings.Cut("\n"+rest, "\n---\n")
	if !found {
		if front, found = strings.CutSuffix("\n"+rest, "\n---"); !found {
			return Role{}, wrong(1, 1, "the front matter that begins here has no end: a line with --- alone")
		}
	}
	// front begins with a newline in the place of the first ---, so its lines are those of the file.
	r := Role{Body: strings.TrimLeft(body, "\n"), Line: strings.Count(front, "\n") + 3}
	r.Line += len(body) - len(r.Body)
	if err := r.readFront(file, front); err != nil {
		return Role{}, err
	}
	switch {
	case r.Name == "":
		return Role{}, wrong(1, 1, `the front matter has no "name"`)
	case strings.TrimSpace(r.Body) == "":
		return Role{}, wrong(strings.Count(front, "\n")+2, 1, "there is no text behind the front matter")
	}
	return r, nil
}

// readFront reads the keys. Claude Code also takes a description with ": " in it that does not stand in
// quotes, which is no YAML, and writes such files itself. So what is no YAML is read line by line.
func (r *Role) readFront(file, front string) *swarm.Error {
	keys := map[string]*string{"name": &r.Name, "description": &r.Description}
	node, bad := yamlfile.Parse(file, []byte(front), hint)
	switch {
	case bad != nil:
		for line := range strings.Lines(front) {
			key, value, _ := strings.Cut(line, ": ")
			if into := keys[key]; into != nil && *into == "" {
				*into = strings.TrimSpace(value)
			}
		}
		if r.Name == "" {
			return bad
		}
		return nil
	case node.Kind != yaml.MappingNode:
		return &swarm.Error{Kind: swarm.BadInput, File: file, Line: node.Line, Column: node.Column, Msg: "the front matter has no keys", Hint: hint}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		into := keys[key.Value]
		if into == nil {
			continue
		}
		if value.Kind != yaml.ScalarNode {
			return &swarm.Error{Kind: swarm.BadInput, File: file, Line: value.Line, Column: value.Column, Msg: "this must be a text: " + key.Value, Hint: hint}
		}
		*into = strings.TrimSpace(value.Value)
	}
	return nil
}
