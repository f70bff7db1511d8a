package replay

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"swarm/internal/excerpt"
)

// Limits of a diff, so that two long prompts still make a short error message.
const (
	diffLines   = 40      // in all
	diffWidth   = 160     // bytes of a line
	diffContext = 2       // unchanged lines before and after a change
	diffWork    = 1 << 20 // cells of the table that [shortest] may fill
)

// An edit is a line of a diff.
type edit struct {
	op   byte // ' ' in both, '-' only before, '+' only after
	text string
	from int // the byte at which the shown part begins
}

// lineDiff shows how two texts differ, line by line.
func lineDiff(before, after string) string {
	edits, first := diff(strings.Split(before, "\n"), strings.Split(after, "\n"))
	focusEdits(edits)
	var b strings.Builder
	shown, hidden := 0, 0
	oldLine, newLine := first, first
	open := false // inside a hunk
	for i, e := range edits {
		near := nearChange(edits, i)
		switch {
		case near && shown >= diffLines:
			hidden++
		case near:
			if !open {
				fmt.Fprintf(&b, "@@ line %d, now line %d @@\n", oldLine, newLine)
			}
			b.WriteByte(e.op)
			b.WriteString(e.show())
			b.WriteByte('\n')
			shown++
		}
		open = near
		if e.op != '+' {
			oldLine++
		}
		if e.op != '-' {
			newLine++
		}
	}
	if hidden > 0 {
		fmt.Fprintf(&b, "… and %d more lines\n", hidden)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// nearChange reports whether the line is changed, or is within diffContext lines of a change.
func nearChange(edits []edit, i int) bool {
	for j := max(0, i-diffContext); j <= min(len(edits)-1, i+diffContext); j++ {
		if edits[j].op != ' ' {
			return true
		}
	}
	return false
}

// diff returns the shortest edits that turn a into b.
// If finding them takes more than diffWork, it removes all old lines and adds all new ones instead.
// Lines that are equal at both ends are left out, except diffContext of them.
// first is the number of the line with which the edits begin.
func diff(a, b []string) (edits []edit, first int) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	put := func(op byte, lines []string) {
		for _, l := range lines {
			edits = append(edits, edit{op: op, text: l})
		}
	}
	before := a[max(0, head-diffContext):head]
	put(' ', before)
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(midA)*len(midB) > diffWork {
		put('-', midA)
		put('+', midB)
	} else {
		edits = append(edits, shortest(midA, midB)...)
	}
	put(' ', a[len(a)-tail:][:min(tail, diffContext)])
	return edits, head - len(before) + 1
}

// shortest finds the edits by the longest common subsequence. It takes len(a)*len(b) steps and
// cells.
func shortest(a, b []string) (edits []edit) {
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width) // of a[i:] and b[j:]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{op: ' ', text: a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*width+j] >= common[i*width+j+1]:
			edits = append(edits, edit{op: '-', text: a[i]})
			i++
		default:
			edits = append(edits, edit{op: '+', text: b[j]})
			j++
		}
	}
	return edits
}

// focusEdits sets, for long lines that replace each other, the shown part to where they begin to
// differ.
func focusEdits(edits []edit) {
	for i := 0; i < len(edits); {
		out := i
		for i < len(edits) && edits[i].op == '-' {
			i++
		}
		in := i
		for i < len(edits) && edits[i].op == '+' {
			i++
		}
		for k := range min(in-out, i-in) {
			a, b := &edits[out+k], &edits[in+k]
			same := 0
			for same < len(a.text) && same < len(b.text) && a.text[same] == b.text[same] {
				same++
			}
			if same > diffWidth/2 {
				a.from, b.from = same-diffWidth/4, same-diffWidth/4
			}
		}
		if i == out {
			i++
		}
	}
}

// show returns the line as a person can read it: long lines are cut, trailing blanks and control
// characters made visible.
func (e edit) show() string {
	text := e.text
	var b strings.Builder
	if e.from > 0 && len(text) > diffWidth {
		text = text[e.from:]
		text = text[excerpt.RestOfRune(text):]
		b.WriteString("…")
	}
	end := ""
	if len(text) > diffWidth {
		text, end = strings.ToValidUTF8(text[:diffWidth], ""), "…"
	}
	body := strings.TrimRight(text, " ")
	if end != "" {
		body = text
	}
	for i, size := 0, 0; i < len(body); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(body[i:])
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError && size == 1 {
			b.WriteString(strings.Trim(strconv.QuoteToASCII(body[i:i+size]), `"`))
			continue
		}
		b.WriteString(body[i : i+size])
	}
	b.WriteString(strings.Repeat("·", len(text)-len(body)))
	return b.String() + end
}
