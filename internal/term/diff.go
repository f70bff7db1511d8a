package term

import "strings"

// Diff is a difference as git prints it, made safe for a terminal.
func Diff(text string, color bool) string {
	p := Paint(color)
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, newline := strings.CutSuffix(line, "\n")
		b.WriteString(p.change(Escape(line)))
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// change gives a line of a difference its colour.
func (p Paint) change(line string) string {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		return p.With(Bold, line)
	case strings.HasPrefix(line, "@@ "):
		return p.With(Cyan, line)
	case strings.HasPrefix(line, "+"):
		return p.With(Green, line)
	case strings.HasPrefix(line, "-"):
		return p.With(Red, line)
	}
	return line
}
