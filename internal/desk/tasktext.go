package desk

import (
	"cmp"
	"strings"
)

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
