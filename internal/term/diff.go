package term

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Diff is a difference as git prints it, made safe for a terminal.
func Diff(text string, color bool) string {
	p := paint{color}
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
func (p paint) change(line string) string {
	style := lipgloss.NewStyle()
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		return p.bold(line)
	case strings.HasPrefix(line, "@@ "):
		style = style.Foreground(lipgloss.Cyan)
	case strings.HasPrefix(line, "+"):
		style = style.Foreground(lipgloss.Green)
	case strings.HasPrefix(line, "-"):
		style = style.Foreground(lipgloss.Red)
	default:
		return line
	}
	return p.with(style, line)
}
