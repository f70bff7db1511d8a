package repl

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
)

// A style is what the terminal is told before a text, or "" for nothing. It is made once: a screen is drawn sixty times a second.
type style string

func sgr(attrs ...ansi.Attr) style { return style(ansi.SGR(attrs...)) }

var (
	plain     = style("")
	bold      = sgr(ansi.AttrBold)
	dim       = sgr(ansi.AttrFaint)
	underline = sgr(ansi.AttrUnderline, ansi.AttrCyanForegroundColor)
	reverse   = sgr(ansi.AttrReverse)
	red       = sgr(ansi.AttrRedForegroundColor)
	wrong     = sgr(ansi.AttrBold, ansi.AttrRedForegroundColor)
	yellow    = sgr(ansi.AttrYellowForegroundColor)
	green     = sgr(ansi.AttrGreenForegroundColor)
	cyan      = sgr(ansi.AttrCyanForegroundColor)

	// people are the colours of agents. Red is kept for what is wrong.
	people = []style{
		cyan, sgr(ansi.AttrMagentaForegroundColor), sgr(ansi.AttrBlueForegroundColor), yellow, green, sgr(ansi.AttrBrightMagentaForegroundColor),
		sgr(ansi.AttrBrightCyanForegroundColor), sgr(ansi.AttrBrightBlueForegroundColor), sgr(ansi.AttrBrightYellowForegroundColor), sgr(ansi.AttrBrightGreenForegroundColor),
	}
)

// A paint is what gives text its colour; without colour it leaves it as it is.
type paint struct{ on bool }

func (p paint) as(s style, text string) string {
	if !p.on || s == "" || strings.TrimLeft(text, " ") == "" {
		return text
	}
	return string(s) + text + ansi.ResetStyle
}

// standing is the colour of a status, the same as on every other screen.
func standing(s swarm.Status) style {
	switch s {
	case swarm.Completed:
		return green
	case swarm.Failed:
		return wrong
	case swarm.Running, swarm.Streaming:
		return cyan
	case swarm.Waiting, swarm.Blocked:
		return yellow
	}
	return dim
}

// mark is a status in one character, so that no one needs colours to see it.
func mark(s swarm.Status) string {
	switch s {
	case swarm.Running, swarm.Streaming:
		return "●"
	case swarm.Completed:
		return "✓"
	case swarm.Failed:
		return "✗"
	case swarm.Skipped, swarm.Cancelled:
		return "⊘"
	case swarm.Waiting, swarm.Blocked:
		return "◌"
	}
	return "·"
}

// tokens are the colours of what is typed.
func (k TokenKind) style() style {
	switch k {
	case AgentToken, CommandToken:
		return cyan
	case ReferenceToken:
		return underline
	case WrongToken:
		return wrong
	case ArrowToken, BackgroundToken:
		return bold
	case FlagToken:
		return yellow
	case EscapeToken:
		return dim
	}
	return plain
}

// pad makes a text, which is safe to print, at least this wide.
func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-ansi.StringWidth(text)))
}

// padLeft is pad with the blanks in front.
func padLeft(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-ansi.StringWidth(text))) + text
}

// A palette gives each agent a colour, which it keeps, in the order in which they are met.
type palette map[string]style

func (p palette) of(agent string) style {
	c, ok := p[agent]
	if !ok {
		c = people[len(p)%len(people)]
		p[agent] = c
	}
	return c
}
