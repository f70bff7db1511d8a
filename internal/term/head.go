package term

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
)

// A Head is the first line of a screen: the run, its time and its cost. Empty fields are left out.
type Head struct {
	Name    string
	ID      swarm.RunID
	Status  swarm.Status
	Elapsed string
	Usage   swarm.Usage
	Calls   string
}

// Line draws the head in a line of this width. Parts that have no room are left out, the least
// important first.
func (h Head) Line(paint Paint, width int) string {
	const always = 6
	type part struct {
		text  string
		style Style
		keep  int // the higher, the longer it stays
	}
	parts := []part{
		{
			OneLine(h.Name),
			Bold,
			always,
		}, {OneLine(string(h.ID)), Dim, 4}, {string(h.Status), StatusStyle(h.Status), always}, {h.Elapsed, Unstyled, 5},
		{SomeTokens(h.Usage), Unstyled, 3}, {Dollars(h.Usage), Unstyled, 2}, {h.Calls, Unstyled, 1},
	}
	for keep := 0; ; keep++ {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.text == "" || p.keep == keep })
		var plain, shown []string
		for _, p := range parts {
			plain, shown = append(plain, p.text), append(shown, paint.With(p.style, p.text))
		}
		if keep+1 == always || ansi.StringWidth(strings.Join(plain, " · ")) <= width {
			return ansi.Truncate(strings.Join(shown, paint.With(Dim, " · ")), width, "…")
		}
	}
}
