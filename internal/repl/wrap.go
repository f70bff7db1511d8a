package repl

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm/internal/term"
)

// A tab is as wide as this many columns, wherever it stands.
const tab = "    "

// cell is how many bytes the first character of a text has, and how many columns it takes when it is shown.
func cell(text string) (bytes, columns int) {
	b := text[0]
	switch {
	case b >= ' ' && b < 0x7f && (len(text) == 1 || text[1] < 0x80):
		return 1, 1
	case b == '\t':
		return 1, len(tab)
	}
	cluster, columns := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	if safe := term.Escape(cluster); safe != cluster {
		columns = ansi.StringWidth(safe)
	}
	return len(cluster), columns
}

// show is a text as it is printed.
func show(text string) string {
	text = term.Escape(text)
	if strings.IndexByte(text, '\t') >= 0 {
		text = strings.ReplaceAll(text, "\t", tab)
	}
	return text
}

// width is how many columns a text takes.
func width(text string) int {
	n := 0
	for text != "" {
		bytes, columns := cell(text)
		n, text = n+columns, text[bytes:]
	}
	return n
}

// wrap finds where the rows of a line begin. What it is given of them is kept, but for the last one: a line that has grown is
// wrapped on from there. Rows end between words where they can, if words are to stay whole.
func wrap(text string, rows []int, columns int, words bool) []int {
	if len(rows) == 0 {
		rows = append(rows, 0)
	}
	columns = max(1, columns)
	begin := rows[len(rows)-1]
	used, gap, word := 0, -1, false
	for i := begin; i < len(text); {
		n, w := cell(text[i:])
		space := text[i] == ' '
		if used+w > columns && i > begin {
			switch {
			case words && space:
				i += n
			case words && gap > 0:
				i = gap
			}
			rows, begin = append(rows, i), i
			used, gap, word = 0, -1, false
			continue
		}
		if space && word {
			gap = i + n
		}
		word = word || !space
		used, i = used+w, i+n
	}
	return rows
}
