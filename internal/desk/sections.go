package desk

import (
	"regexp"
	"slices"
	"strings"
)

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
