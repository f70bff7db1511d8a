package desk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
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

// sectionLike reports whether a line would begin a section, or be the title.
func sectionLike(line string) bool {
	return headingOf(line) != "" ||
		strings.HasPrefix(line, strings.TrimSpace(titleStart)) || strings.HasPrefix(line, failedStart)
}

// headingOf returns the heading of the protocol that a line is, or "". People write it in any case, and
// with a colon.
func headingOf(line string) string {
	line, ok := strings.CutPrefix(line, "##")
	if !ok || line == "" || line[0] != ' ' && line[0] != '\t' {
		return ""
	}
	line = "## " + strings.TrimRight(strings.Join(strings.Fields(line), " "), ": ")
	if i := slices.IndexFunc(headings, func(head string) bool { return strings.EqualFold(head, line) }); i >= 0 {
		return headings[i]
	}
	return ""
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
		head := headingOf(line)
		if strings.HasPrefix(line, failedStart) {
			head = strings.TrimRight(line, " \t")
		}
		switch {
		case titleLine == 0 && strings.HasPrefix(line, strings.TrimSpace(titleStart)):
			title, titleLine = strings.TrimSpace(strings.TrimPrefix(line, strings.TrimSpace(titleStart))), n
		case head != "" && !slices.ContainsFunc(all, func(s section) bool { return s.head == head }):
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

// A Part is a piece of a task's text.
type Part struct {
	Text string
	Data bool // others wrote it, such as an output of another task: no line of it begins a section
}

// NewInstructions makes instructions from the text of a task. Sections of the protocol in it are taken
// over as they are written. All other text belongs to the objective: what stands before the first
// heading, then the objective, then the sections that the protocol does not know.
func NewInstructions(task string, parts []Part) Instructions {
	const before, other = "", "other"
	i, titled := Instructions{Task: task}, false
	sections := map[string][]string{}
	head, code := before, fence("")
	for _, l := range splitLines(parts) {
		inside := code != ""
		if !l.data {
			code = code.after(l.text)
		}
		switch {
		case l.data || inside || !isHeading(l.text):
		case !titled && strings.HasPrefix(l.text, strings.TrimSpace(titleStart)):
			title := strings.TrimPrefix(l.text, strings.TrimSpace(titleStart))
			i.Task, titled = cmp.Or(strings.TrimSpace(title), task), true
			continue
		default:
			if head = headingOf(l.text); head != "" {
				continue
			}
			head = other
		}
		sections[head] = append(sections[head], l.text)
	}
	for _, head := range headings {
		i.take(section{head: head, lines: sections[head]})
	}
	var all []string
	for _, text := range []string{section{lines: sections[before]}.text(), i.Objective, section{lines: sections[other]}.text()} {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	i.Objective = strings.Join(all, "\n\n")
	return i
}

// A promptLine is a line of a task's text.
type promptLine struct {
	text string
	data bool // it begins with a text of others
}

func splitLines(parts []Part) (lines []promptLine) {
	open := false // the last line has no end yet
	for _, p := range parts {
		for line := range strings.Lines(p.Text) {
			text := strings.TrimRight(line, "\r\n")
			if open {
				lines[len(lines)-1].text += text
			} else {
				lines = append(lines, promptLine{text, p.Data})
			}
			open = !strings.HasSuffix(line, "\n")
		}
	}
	return lines
}

// isHeading reports whether a line is a heading that ends a section: of the first or second level.
func isHeading(line string) bool {
	return strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ")
}

// A fence is the mark that began a block of code; "" = there is none.
type fence string

// after returns the fence after a line.
func (f fence) after(line string) fence {
	line = strings.TrimSpace(line)
	mark := line[:len(line)-len(strings.TrimLeft(line, "`"))]
	if mark == "" {
		mark = line[:len(line)-len(strings.TrimLeft(line, "~"))]
	}
	switch {
	case f == "" && len(mark) >= 3:
		return fence(mark)
	case f != "" && mark == line && strings.HasPrefix(mark, string(f)):
		return ""
	}
	return f
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

// ownItems returns the items that do not stand under another heading.
func (s section) ownItems() []string {
	code := fence("")
	for i, line := range s.lines {
		if code == "" && isHeading(strings.TrimLeft(line, `\`)) {
			s.lines = s.lines[:i]
			break
		}
		code = code.after(line)
	}
	return s.items()
}

// items returns the items of a list. Indented lines continue the item above. Blocks of code are no items.
func (s section) items() (items []string) {
	code, after := fence(""), false // after: the line above belongs to an item
	for _, line := range s.lines {
		inside := code != ""
		code = code.after(line)
		m := itemStart.FindStringSubmatch(line)
		rest := strings.TrimSpace(line)
		switch {
		case inside || code != "":
			after = false
		case m != nil:
			items, after = append(items, strings.TrimSpace(m[1])), true
		case rest == "":
		case rest != line && after:
			items[len(items)-1] += "\n" + rest
		default:
			after = false
		}
	}
	return items
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

const failedStart = "## Why Attempt "

// ExplainFailure adds to the instructions why an attempt failed. The reason is quoted, because the
// worker wrote it: no line of it can look like a section. An attempt that is explained already is not
// explained again, so that a crash in the middle of [Desk.Reset] adds nothing twice.
func (d *Desk) ExplainFailure(attempt int, why Failure) error {
	text, err := d.read(InstructionsFile, MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.unusable(InstructionsFile, err)
	}
	head := failedHead(attempt)
	if d.Explains(attempt) {
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

func failedHead(attempt int) string { return fmt.Sprintf("%s%d Failed", failedStart, attempt) }

// Explains reports whether the instructions say why an attempt failed.
func (d *Desk) Explains(attempt int) bool {
	text, _ := d.read(InstructionsFile, MaxFile)
	_, _, all := splitSections(string(text))
	return slices.ContainsFunc(all, func(s section) bool { return s.head == failedHead(attempt) })
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
