package desk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
)

// Instructions are inbox/instructions.md: what the worker has to do.
type Instructions struct {
	Task         string      `json:"task"` // a name for it
	Objective    string      `json:"objective"`
	Context      string      `json:"context,omitempty"`
	Inputs       []Provided  `json:"inputs,omitempty"`
	Requirements []string    `json:"requirements,omitempty"`
	Criteria     []Criterion `json:"criteria,omitempty"`
	Constraints  []string    `json:"constraints,omitempty"`
	Outputs      []string    `json:"outputs,omitempty"` // what is expected in the outbox; nil = DefaultOutputs
}

// A Provided is an input as the instructions list it.
type Provided struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// A Criterion is a measurable outcome.
type Criterion struct {
	Text string `json:"text"`
	Met  bool   `json:"met"` // as the worker says, by a ticked box
}

// DefaultOutputs is what every worker must produce.
var DefaultOutputs = []string{"Place main deliverable in `outbox/`", "Include summary in `outbox/summary.md`"}

// The headings of the protocol.
const (
	titleStart = "# Task: "

	headObjective    = "## Objective"
	headContext      = "## Context"
	headInputs       = "## Inputs Provided"
	headRequirements = "## Requirements"
	headCriteria     = "## Success Criteria"
	headConstraints  = "## Constraints"
	headOutputs      = "## Output Expectations"
)

// headings lists the sections in their order.
var headings = []string{
	headObjective, headContext, headInputs, headRequirements, headCriteria, headConstraints, headOutputs,
}

// Render writes the instructions with the headings of the protocol. A section without content says
// so, because a worker may look for each of them.
func (i Instructions) Render() []byte {
	outputs := i.Outputs
	if outputs == nil {
		outputs = DefaultOutputs
	}
	var inputs, criteria []string
	for _, p := range i.Inputs {
		line := "`" + strings.ReplaceAll(p.Name, "`", "'") + "`"
		if p.Description != "" {
			line += " - " + p.Description
		}
		inputs = append(inputs, line)
	}
	for _, c := range i.Criteria {
		criteria = append(criteria, box(c.Met)+" "+c.Text)
	}
	var b strings.Builder
	b.WriteString(titleStart + excerpt.OneLine(i.Task) + "\n")
	writeText(&b, headObjective, i.Objective)
	writeText(&b, headContext, i.Context)
	writeList(&b, headInputs, inputs, false)
	writeList(&b, headRequirements, i.Requirements, true)
	writeList(&b, headCriteria, criteria, false)
	writeList(&b, headConstraints, i.Constraints, false)
	writeList(&b, headOutputs, outputs, false)
	return []byte(b.String())
}

const none = "None."

func box(ticked bool) string {
	if ticked {
		return "[x]"
	}
	return "[ ]"
}

// writeText writes a section of free text. A line that would begin a section of ours is escaped, so
// that no text can forge one.
func writeText(b *strings.Builder, head, text string) {
	b.WriteString("\n" + head + "\n")
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		text = none
	}
	for line := range strings.SplitSeq(text, "\n") {
		if sectionLike(strings.TrimLeft(line, `\`)) {
			b.WriteString(`\`)
		}
		b.WriteString(line + "\n")
	}
}

// sectionLike reports whether a line would begin a section, or be the title.
func sectionLike(line string) bool {
	return slices.Contains(headings, strings.TrimRight(line, " \t")) ||
		strings.HasPrefix(line, strings.TrimSpace(titleStart)) || strings.HasPrefix(line, failedStart)
}

// writeList writes a section that is a list. Further lines of an item are indented.
func writeList(b *strings.Builder, head string, items []string, numbered bool) {
	b.WriteString("\n" + head + "\n")
	if len(items) == 0 {
		b.WriteString(none + "\n")
	}
	for i, item := range items {
		mark := "- "
		if numbered {
			mark = fmt.Sprintf("%d. ", i+1)
		}
		lines := strings.FieldsFunc(item, func(c rune) bool { return c == '\n' || c == '\r' })
		for n, line := range lines {
			if n == 0 {
				b.WriteString(mark + strings.TrimSpace(line) + "\n")
			} else {
				b.WriteString(strings.Repeat(" ", len(mark)) + strings.TrimSpace(line) + "\n")
			}
		}
	}
}

// A section is a part of instructions.md.
type section struct {
	head  string
	line  int // of its heading, from 1
	lines []string
}

// splitSections splits a text at the headings of the protocol. Other headings belong to the text that
// they stand in. A section that comes twice counts the first time.
func splitSections(text string) (title string, titleLine int, all []section) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		head := strings.TrimRight(line, " \t")
		switch {
		case titleLine == 0 && strings.HasPrefix(line, strings.TrimSpace(titleStart)):
			title, titleLine = strings.TrimSpace(strings.TrimPrefix(line, strings.TrimSpace(titleStart))), n
		case slices.Contains(headings, head) && !slices.ContainsFunc(all, func(s section) bool { return s.head == head }),
			strings.HasPrefix(line, failedStart):
			all = append(all, section{head: head, line: n})
		case len(all) > 0:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		}
	}
	return title, titleLine, all
}

// ReadInstructions reads instructions.md. Missing sections are empty: [Validate] reports them.
func ReadInstructions(text []byte) Instructions {
	title, _, all := splitSections(string(text))
	i := Instructions{Task: title}
	for _, s := range all {
		switch s.head {
		case headObjective:
			i.Objective = s.text()
		case headContext:
			i.Context = s.text()
		case headInputs:
			for _, item := range s.items() {
				i.Inputs = append(i.Inputs, readProvided(item))
			}
		case headRequirements:
			i.Requirements = s.items()
		case headCriteria:
			i.Criteria = readCriteria(s.items())
		case headConstraints:
			i.Constraints = s.items()
		case headOutputs:
			i.Outputs = s.items()
		}
	}
	return i
}

// A Part is a piece of a task's text.
type Part struct {
	Text string
	Data bool // others wrote it, such as an output of another task: no line of it begins a section
}

// NewInstructions makes instructions from the text of a task. Sections of the protocol in it are taken
// over. Text before them belongs to the objective.
func NewInstructions(task string, parts []Part) Instructions {
	var all strings.Builder
	for _, p := range parts {
		if !p.Data {
			all.WriteString(p.Text)
			continue
		}
		for line := range strings.Lines(p.Text) {
			if sectionLike(strings.TrimLeft(strings.TrimRight(line, "\r\n"), `\`)) {
				all.WriteString(`\`)
			}
			all.WriteString(line)
		}
	}
	text := all.String()
	i := ReadInstructions([]byte(text))
	_, _, found := splitSections(text)
	before := section{lines: strings.Split(text, "\n")}
	if len(found) > 0 {
		before.lines = before.lines[:found[0].line-1]
	}
	before.lines = slices.DeleteFunc(before.lines, func(line string) bool { return strings.HasPrefix(line, strings.TrimSpace(titleStart)) })
	i.Objective = strings.TrimSpace(before.text() + "\n\n" + i.Objective)
	i.Task = cmp.Or(i.Task, task)
	return i
}

// text returns the free text of a section.
func (s section) text() string {
	lines := slices.Clone(s.lines)
	for i, line := range lines {
		if bare := strings.TrimLeft(line, `\`); bare != line && sectionLike(bare) {
			lines[i] = line[1:]
		}
	}
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	if text == none {
		return ""
	}
	return text
}

var itemStart = regexp.MustCompile(`^(?:[-*+]|\d+[.)])\s+(.*)$`)

// items returns the items of a list. Indented lines continue the item above.
func (s section) items() (items []string) {
	for _, line := range s.lines {
		if m := itemStart.FindStringSubmatch(line); m != nil {
			items = append(items, strings.TrimSpace(m[1]))
		} else if rest := strings.TrimSpace(line); rest != "" && rest != line && len(items) > 0 {
			items[len(items)-1] += "\n" + rest
		}
	}
	return items
}

var providedLine = regexp.MustCompile("(?s)^`([^`]*)`(?: - (.*))?$")

func readProvided(item string) Provided {
	if m := providedLine.FindStringSubmatch(item); m != nil {
		return Provided{m[1], m[2]}
	}
	return Provided{Name: item}
}

var ticked = regexp.MustCompile(`(?s)^\[([ xX])\]\s*(.*)$`)

func readCriteria(items []string) (all []Criterion) {
	for _, item := range items {
		c := Criterion{Text: item}
		if m := ticked.FindStringSubmatch(item); m != nil {
			c = Criterion{Text: m[2], Met: m[1] != " "}
		}
		all = append(all, c)
	}
	return all
}

// Instructions reads inbox/instructions.md.
func (d *Desk) Instructions() (Instructions, error) {
	text, err := d.read(InstructionsFile, MaxFile)
	if err != nil {
		return Instructions{}, d.unusable(InstructionsFile, err)
	}
	return ReadInstructions(text), nil
}

const failedStart = "## Why Attempt "

// explainFailure adds to the instructions why an attempt failed. The reason is quoted, because the
// worker wrote it: no line of it can look like a section. An attempt that is explained already is not
// explained again, so that a crash in the middle of [Desk.Reset] adds nothing twice.
func (d *Desk) explainFailure(attempt int, why Failure) error {
	text, err := d.read(InstructionsFile, MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.unusable(InstructionsFile, err)
	}
	head := fmt.Sprintf("%s%d Failed", failedStart, attempt)
	_, _, all := splitSections(string(text))
	if slices.ContainsFunc(all, func(s section) bool { return s.head == head }) {
		return nil
	}
	var b strings.Builder
	b.Write(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		b.WriteString("\n")
	}
	b.WriteString("\n" + head + "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(why.String()), "\n") {
		b.WriteString("> " + strings.TrimRight(line, "\r") + "\n")
	}
	if b.Len() > MaxFile {
		return swarm.Errorf(swarm.BadInput, "the instructions of %s have no room for another failure", d.Name())
	}
	return d.write(InstructionsFile, []byte(b.String()))
}

// Attempts counts the failed attempts that the instructions tell of.
func (d *Desk) Attempts() int {
	text, _ := d.read(InstructionsFile, MaxFile)
	_, _, all := splitSections(string(text))
	n := 0
	for _, s := range all {
		if strings.HasPrefix(s.head, failedStart) {
			n++
		}
	}
	return n
}
