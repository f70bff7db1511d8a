package term

import "strings"

// Diff makes a diff by git safe for a terminal, and colours it.
func Diff(text string, color bool) string {
	p := Paint(color)
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, newline := strings.CutSuffix(line, "\n")
		b.WriteString(p.diffLine(Escape(line)))
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// diffLine colours a line of a diff.
func (p Paint) diffLine(line string) string {
	switch {
	case strings.HasPrefix(line, "+++ "),
		strings.HasPrefix(line, "--- "),
		strings.HasPrefix(line, "diff "),
		strings.HasPrefix(line, "index "):
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
