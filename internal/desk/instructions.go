package desk

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

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
	// Written are the texts of those sections of lists that are more than the plain list, by heading.
	// The items are also in the lists above.
	Written map[string]string `json:"written,omitempty"`
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
	var b strings.Builder
	b.WriteString(titleStart + excerpt.OneLine(i.Task) + "\n")
	writeText(&b, headObjective, i.Objective)
	writeText(&b, headContext, i.Context)
	i.writeItems(&b, headInputs, inputItems(i.Inputs))
	i.writeItems(&b, headRequirements, i.Requirements)
	i.writeItems(&b, headCriteria, criteriaItems(i.Criteria))
	i.writeItems(&b, headConstraints, i.Constraints)
	i.writeItems(&b, headOutputs, outputs)
	return []byte(b.String())
}

func inputItems(inputs []Provided) (items []string) {
	for _, p := range inputs {
		line := "`" + strings.ReplaceAll(p.Name, "`", "'") + "`"
		if p.Description != "" {
			line += " - " + p.Description
		}
		items = append(items, line)
	}
	return items
}

func criteriaItems(criteria []Criterion) (items []string) {
	for _, c := range criteria {
		items = append(items, box(c.Met)+" "+c.Text)
	}
	return items
}

// writeItems writes a section of a list. One that somebody wrote otherwise stays as it is, and gains the
// items that are not in it.
func (i Instructions) writeItems(b *strings.Builder, head string, items []string) {
	text := i.Written[head]
	if text == "" {
		writeList(b, head, items)
		return
	}
	there := section{head: head, lines: strings.Split(text, "\n")}.ownItems()
	switch head {
	case headInputs:
		there = inputItems(readInputs(there))
	case headCriteria:
		there = criteriaItems(readCriteria(there))
	}
	items = slices.DeleteFunc(slices.Clone(items), func(item string) bool { return slices.Contains(there, item) })
	writeText(b, head, text)
	if len(items) > 0 {
		b.WriteString("\n")
		writeListItems(b, head, items)
	}
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

// writeList writes a section that is a list.
func writeList(b *strings.Builder, head string, items []string) {
	b.WriteString("\n" + head + "\n")
	if len(items) == 0 {
		b.WriteString(none + "\n")
	}
	writeListItems(b, head, items)
}

// writeListItems writes the items of a list. Further lines of an item are indented.
func writeListItems(b *strings.Builder, head string, items []string) {
	for i, item := range items {
		mark := "- "
		if head == headRequirements {
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

// ReadInstructions reads instructions.md. Missing sections are empty: [Validate] reports them.
func ReadInstructions(text []byte) Instructions {
	title, _, all := splitSections(string(text))
	i := Instructions{Task: title}
	for _, s := range all {
		i.take(s)
	}
	return i
}

// take takes the content of a section over.
func (i *Instructions) take(s section) {
	items := s.ownItems()
	switch s.head {
	case headObjective:
		i.Objective = s.text()
	case headContext:
		i.Context = s.text()
	case headInputs:
		i.Inputs = readInputs(items)
		i.keep(s, inputItems(i.Inputs))
	case headRequirements:
		i.Requirements = items
		i.keep(s, items)
	case headCriteria:
		i.Criteria = readCriteria(items)
		i.keep(s, criteriaItems(i.Criteria))
	case headConstraints:
		i.Constraints = items
		i.keep(s, items)
	case headOutputs:
		i.Outputs = items
		i.keep(s, items)
	}
}

// keep keeps the text of a section that is more than the plain list of its items.
func (i *Instructions) keep(s section, items []string) {
	var plain strings.Builder
	writeListItems(&plain, s.head, items)
	if text := s.text(); strings.TrimSpace(text) != strings.TrimSpace(plain.String()) {
		if i.Written == nil {
			i.Written = map[string]string{}
		}
		i.Written[s.head] = text
	}
}

func readInputs(items []string) (all []Provided) {
	for _, item := range items {
		all = append(all, readProvided(item))
	}
	return all
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

// NameInputs lists inputs in the instructions that were too large to copy. It replaces the entry of
// a file that is listed already.
func (d *Desk) NameInputs(large []Recorded) error {
	if len(large) == 0 {
		return nil
	}
	text, err := d.read(InstructionsFile, MaxFile)
	if err != nil {
		return d.unusable(InstructionsFile, err)
	}
	_, _, all := splitSections(string(text))
	i := slices.IndexFunc(all, func(s section) bool { return s.head == headInputs })
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if i < 0 {
		lines = append(lines, "", headInputs)
		i, all = 0, []section{{line: len(lines)}}
	}
	at := all[i].line // the number of the heading is the index of the line below it
	if at < len(lines) && lines[at] == none {
		lines = slices.Delete(lines, at, at+1)
	}
	for _, r := range large {
		item := "- " + inputItems(provided(Input{Name: path.Base(r.Path)}, []Recorded{r}))[0]
		start := item[:strings.LastIndex(item, "` - ")+1]
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, start+" - not copied, ") })
		lines = slices.Insert(lines, at, item)
	}
	return d.write(InstructionsFile, []byte(strings.Join(lines, "\n")+"\n"))
}
