// Package prompt makes prompts, in two steps.
//
// [Parse] reads a prompt file once, when the run is planned. It resolves the includes. The result
// is a [Template]: text with references to outputs, inputs and standard input.
//
// [Build] makes the whole prompt before each turn. It takes the agent's role, the task's template,
// and the values of the references at that moment. It notes the origin of every byte.
//
// Injected text is data. Build never looks for directives in it, and escapes lines that a model
// could take for one of our fences (see [Escape]).
//
// The package does no I/O: the caller passes functions that read files and find outputs.
package prompt

import (
	"encoding/json"
	"fmt"
	"strings"

	"swarm"
)

// MaxPrompt is the size of the largest prompt, and of the largest template.
const MaxPrompt = 4 << 20

// A Template is a prompt whose includes are resolved. It is stored as JSON in the run's log.
type Template struct {
	Parts []Part `json:"parts"`
}

// A Part is a piece of text, or a reference that Build replaces by a value.
type Part struct {
	Kind     string `json:"kind"`               // one of the Kind constants
	Text     string `json:"text,omitempty"`     // of a text
	Name     string `json:"name,omitempty"`     // the task of an output, the input's own name of an input
	Task     string `json:"task,omitempty"`     // of an agent: the task whose output it is, "" = the agent's newest good one; of a pack: the turn that was given it
	Selector string `json:"selector,omitempty"` // which part of the output; "" = all of it
	File     string `json:"file,omitempty"`     // the file in which it is written
	Line     int    `json:"line,omitempty"`     // of a reference, from 1
	Column   int    `json:"column,omitempty"`   // of a reference, from 1, in characters
	Known    bool   `json:"-"`                  // of a finding: the agent's session has it; no template holds one
}

// The kinds of parts.
const (
	KindText   = "text"
	KindOutput = "output" // {{output:task}}
	KindInput  = "input"  // {{input:name}}
	KindStdin  = "stdin"  // {{STDIN}}
	KindAgent  = "agent"  // $agent, in lines only
)

// String returns the part as it is written in a prompt file.
func (p Part) String() string {
	switch p.Kind {
	case KindText:
		return p.Text
	case KindStdin:
		return "{{STDIN}}"
	case KindAgent:
		return "$" + p.Name
	}
	if p.Selector == "" {
		return "{{" + p.Kind + ":" + p.Name + "}}"
	}
	return "{{" + p.Kind + ":" + p.Name + ":" + p.Selector + "}}"
}

// A Ref is a reference in a template.
type Ref struct {
	Kind, Name, Selector string
	File                 string
	Line, Column         int
}

// Refs returns the references of the template, in order.
func (t Template) Refs() []Ref {
	var refs []Ref
	for _, p := range t.Parts {
		if p.Kind != KindText {
			refs = append(refs, Ref{p.Kind, p.Name, p.Selector, p.File, p.Line, p.Column})
		}
	}
	return refs
}

// MaxBytes returns the largest size of the built template, if no output and no standard input is
// larger than outputCap. Text that has to be cleaned or escaped takes somewhat more.
func (t Template) MaxBytes(outputCap int) int64 {
	var n int64
	for _, p := range t.Parts {
		switch p.Kind {
		case KindText:
			n += int64(len(p.Text))
		case KindStdin:
			n += int64(outputCap)
		case KindAgent:
			n += int64(outputCap + len("[Output from @]: ") + len(p.Name))
		case KindOutput:
			n += int64(outputCap + outputFence.size(len(p.Name)))
		case KindInput:
			n += int64(outputCap + outputFence.size(swarm.MaxName)) // the name of the task stands elsewhere
		}
	}
	return n
}

// Join joins templates, with one empty line between them. Empty ones are left out.
func Join(ts ...Template) Template {
	var all Template
	for _, t := range ts {
		parts := core(t.Parts)
		if len(parts) == 0 {
			continue
		}
		if len(all.Parts) > 0 {
			all.Parts = append(all.Parts, Part{Kind: KindText, Text: emptyLine})
		}
		for i, p := range parts {
			p.Text = edge(parts, i)
			all.Parts = append(all.Parts, p)
		}
	}
	return all
}

const (
	newlines  = "\r\n"
	emptyLine = "\n\n"
)

// The trims below run for every reference. They are faster than those of package strings, which
// build a set of characters each time.

func trimRightNewlines(s string) string {
	for s != "" && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	return s
}

func trimRightBlanks(s string) string {
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

func trimLeftBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// core returns the parts without texts at both ends that hold only newlines.
func core(parts []Part) []Part {
	bare := func(p Part) bool { return p.Kind == KindText && strings.Trim(p.Text, newlines) == "" }
	for len(parts) > 0 && bare(parts[0]) {
		parts = parts[1:]
	}
	for len(parts) > 0 && bare(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// edge returns the text of the part at i, without the newlines at either end of all parts.
func edge(parts []Part, i int) string {
	text := parts[i].Text
	if i == 0 {
		text = strings.TrimLeft(text, newlines)
	}
	if i == len(parts)-1 {
		text = strings.TrimRight(text, newlines)
	}
	return text
}

// Marshal returns the template as it is stored.
func (t Template) Marshal() []byte {
	if t.Parts == nil {
		t.Parts = []Part{}
	}
	return swarm.Encode(t)
}

// Unmarshal reads a stored template.
func Unmarshal(data []byte) (Template, error) {
	var t Template
	if err := json.Unmarshal(data, &t); err != nil {
		return Template{}, &swarm.Error{Kind: swarm.Storage, Msg: "a stored prompt cannot be read", Err: err}
	}
	for i, p := range t.Parts {
		switch p.Kind {
		case KindText, KindOutput, KindInput, KindStdin, KindAgent:
		default:
			return Template{}, swarm.Errorf(swarm.Storage, "a stored prompt cannot be read: part %d is of the unknown kind %q", i+1, p.Kind)
		}
	}
	return t, nil
}

// A fence stands around injected text: a line before it and a line after it, both with a name.
type fence struct {
	open, opened string // before and after the name, with the newline
	shut, closed string // the same of the closing line; if closed is "", the line has no name
}

var (
	outputFence = fence{`--- Output from task "`, "\" ---\n", `--- End output from task "`, `" ---`}
	retryFence  = fence{"--- Why attempt ", " failed ---\n", "--- End ---", ""}
	sentFence   = fence{"--- Output already sent", " ---\n", "--- End ---", ""}
)

// size returns how many bytes the fence adds to a text at most. It counts the newlines that
// separate its lines from the text around.
func (f *fence) size(name int) int {
	return len(f.open) + len(f.opened) + len(f.shut) + len(f.closed) + 2*name + len("\n\n\n\n")
}

// placeholder stands for the output of a task that has never run.
func placeholder(task string) string {
	return fmt.Sprintf(`(No output available from task "%s")`, task)
}
