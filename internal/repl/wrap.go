package repl

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm/internal/term"
)

// tab is how a tab is shown, wherever it stands.
const tab = "    "

// cell returns the number of bytes of a text's first character, and of the columns that it takes.
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

// safeText makes a text safe to print.
func safeText(text string) string {
	text = term.Escape(text)
	if strings.IndexByte(text, '\t') >= 0 {
		text = strings.ReplaceAll(text, "\t", tab)
	}
	return text
}

// width returns the number of columns of a text.
func width(text string) int {
	n := 0
	for text != "" {
		bytes, columns := cell(text)
		n, text = n+columns, text[bytes:]
	}
	return n
}

// wrap finds the beginnings of a line's rows. The given rows are kept except for the last one, so
// that a line that grows is only wrapped on. With words, rows end between words where they can.
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
