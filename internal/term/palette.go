package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
)

// Color decides whether to print in colour: first the flag --color (always, never or auto), then
// the environment, then whether the output is a terminal.
func Color(flag string, getenv func(string) string, terminal bool) (bool, error) {
	switch flag {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto", "":
	default:
		return false, swarm.Errorf(swarm.BadInput, "%q is no value for --color", flag).
			WithHint("%s", swarm.DidYouMean(flag, []string{"auto", "always", "never"}))
	}
	switch force := getenv("CLICOLOR_FORCE"); {
	case getenv("NO_COLOR") != "":
		return false, nil
	case force != "" && force != "0":
		return true, nil
	case getenv("CLICOLOR") == "0", getenv("TERM") == "dumb":
		return false, nil
	}
	return terminal, nil
}

// A Style is the escape sequence that begins a look. It is made once, because a screen is drawn
// sixty times a second.
type Style string

func sgr(attrs ...ansi.Attr) Style { return Style(ansi.SGR(attrs...)) }

// The styles of every screen.
var (
	Unstyled  = Style("")
	Bold      = sgr(ansi.AttrBold)
	Dim       = sgr(ansi.AttrFaint)
	Underline = sgr(ansi.AttrUnderline)
	Reverse   = sgr(ansi.AttrReverse)
	Red       = sgr(ansi.AttrRedForegroundColor)
	Yellow    = sgr(ansi.AttrYellowForegroundColor)
	Green     = sgr(ansi.AttrGreenForegroundColor)
	Cyan      = sgr(ansi.AttrCyanForegroundColor)
	Wrong     = sgr(ansi.AttrBold, ansi.AttrRedForegroundColor)
	Reference = sgr(ansi.AttrUnderline, ansi.AttrCyanForegroundColor)
)

// nameStyles are the colours of names. Red is not among them: it means that something is wrong.
var nameStyles = []Style{
	Cyan, sgr(ansi.AttrMagentaForegroundColor), sgr(ansi.AttrBlueForegroundColor), Yellow, Green,
	sgr(
		ansi.AttrBrightMagentaForegroundColor,
	), sgr(ansi.AttrBrightCyanForegroundColor), sgr(ansi.AttrBrightBlueForegroundColor),
	sgr(ansi.AttrBrightYellowForegroundColor), sgr(ansi.AttrBrightGreenForegroundColor),
}

// A Palette gives every name a colour, in the order in which the names come. A name keeps its
// colour.
type Palette map[string]Style

// Of returns the colour of a name.
func (p Palette) Of(name string) Style {
	s, ok := p[name]
	if !ok {
		s = nameStyles[len(p)%len(nameStyles)]
		p[name] = s
	}
	return s
}

// Paint gives text its style. False leaves text as it is, for output without colours.
type Paint bool

// With returns a text in a style.
func (p Paint) With(s Style, text string) string {
	if !p || s == Unstyled || strings.TrimLeft(text, " ") == "" {
		return text
	}
	return string(s) + text + ansi.ResetStyle
}

// Status returns a text in the colour of a status.
func (p Paint) Status(s swarm.Status, text string) string { return p.With(StatusStyle(s), text) }
