package prompt

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Escape makes text safe to be put into a prompt as data. It puts a `\` in front of each line that
// a reader may take for one of our own lines: a fence, the heading of the findings, or an id line.
// Lines are compared as a model reads them and not byte by byte (see ownLine). Removing one `\`
// from each line that Escape changed restores the text.
//
// Bytes that are not UTF-8 become U+FFFD. So does NUL, which no argument of a program can hold.
func Escape[T ~string | ~[]byte](text T) string {
	return escape(string(text))
}

// clean replaces NUL, and everything that is not UTF-8, by U+FFFD.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

// escape cleans text, and puts `\` in front of each line that reads like one of ours. Most texts
// have no such line, so the search must be cheap. It is one pass over eight bytes at a time that
// stops at the ends of lines, looks at how each line begins, and allocates nothing.
func escape(text string) string {
	places, careful := quickly(text)
	if careful {
		text = clean(text)
		places = carefully(&beginnings, text)
	}
	return addMarks(text, places)
}

// addMarks puts `\` at these places of text.
func addMarks(text string, places []int) string {
	if len(places) == 0 {
		return text
	}
	b := make([]byte, 0, len(text)+len(places))
	done := 0
	for _, at := range places {
		b = append(append(b, text[done:at]...), '\\')
		done = at
	}
	return string(append(b, text[done:]...))
}

const (
	eachByte = 0x0101010101010101
	topBits  = 0x80 * eachByte
)

// quickly finds the places for a `\` in a clean text whose lines end with \n or \r\n. For any other
// text it returns careful = true.
func quickly(text string) (places []int, careful bool) {
	places = inLine(nil, text, 0)
	var wide uint64
	left := unsafe.Slice(unsafe.StringData(text), len(text))
	for ; len(left) >= 40; left = left[32:] {
		b := (*[40]byte)(left)
		w, x, y, z := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		wide |= w | x | y | z
		w, x, y, z = noControls(w), noControls(x), noControls(y), noControls(z)
		if w&x&y&z&topBits == topBits {
			continue
		}
		// The bits of all four words in one, so that there is one loop, without a second pass over
		// the words: bit n of byte i is for byte i of word n. The order of places does not matter.
		found := ^(w&topBits>>7 | x&topBits>>6 | y&topBits>>5 | z&topBits>>4) & (0x0f * eachByte)
		for ; found != 0; found &= found - 1 {
			bit := bits.TrailingZeros64(found)
			i := bit&3*8 + bit>>3
			if b[i] == '\n' && plainLine(b[i+1], b[i+2], b[i+3], b[i+4], b[i+5]) || b[i] == '\t' {
				continue
			}
			if places, careful = atControl(places, text, len(text)-len(left)+i); careful {
				return nil, true
			}
		}
	}
	for i, c := range left {
		wide |= uint64(c)
		if c < ' ' {
			if places, careful = atControl(places, text, len(text)-len(left)+i); careful {
				return nil, true
			}
		}
	}
	if wide&topBits != 0 {
		if !utf8.ValidString(text) {
			return nil, true
		}
		for _, r := range wideControls {
			if strings.Contains(text, r) {
				return nil, true
			}
		}
	}
	return inTagged(places, text), false
}

// noControls returns a word with the top bits of those bytes of x set that are no ASCII controls. A
// sum of two seven-bit bytes carries into the top bit of its own byte and no further. Here it
// carries for all bytes that are no controls.
func noControls(x uint64) uint64 { return x&^topBits + (0x80-' ')*eachByte | x }

// plainLine reports whether a line with these first bytes begins as most lines of most texts do,
// also in lists and tables: with a letter that no line of ours begins with, and that is not the
// number of a list item. It says so of no line for which mayBeOurs is true.
func plainLine(a, b, c, d, e byte) bool {
	if (a == '-' || a == '|' || a == ' ' || a == '\t') && (b == ' ' || b == '\t') {
		a, b, c = c, d, e
	}
	return a == '\n' || ordinary[a] && (!numbers[b] || classes[c] == letter)
}

func atControl(places []int, text string, at int) ([]int, bool) {
	switch text[at] {
	case '\n':
		return inLine(places, text, at+1), false
	case '\r':
		return places, at+1 == len(text) || text[at+1] != '\n'
	case 0, '\b', '\v', '\f', '\x1b', '\x1c', '\x1d', '\x1e':
		return nil, true
	}
	return places, false
}

// inLine adds the place in the line that begins at start, if the line needs a `\`.
func inLine(places []int, text string, start int) []int {
	if !mayBeOurs(text[start:]) {
		return places
	}
	line, _, _ := strings.Cut(text[start:], "\n")
	if at, _, ok := ownLine(&beginnings, line, text[start+len(line):]); ok {
		places = append(places, start+at)
	}
	return places
}

// inTagged adds the places in lines that may have HTML tags.
func inTagged(places []int, text string) []int {
	for start := 0; ; {
		at := strings.IndexByte(text[start:], '<')
		if at < 0 {
			break
		}
		at += start
		line, _, _ := strings.Cut(text[at:], "\n")
		start = at + len(line)
		places = inPieces(&beginnings, places, text, strings.LastIndexByte(text[:at], '\n')+1, start)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// wideControls lists the line ends of Unicode, the one-character control sequence introducer, and
// the first bytes of all tag characters. Tag characters are letters that no screen shows.
var wideControls = []string{"\u0085", "\u2028", "\u2029", "\u009b", "\xf3\xa0"}

// carefully finds the places for a `\` in any text. ours are the lines that need one.
func carefully(ours *lineTable, text string) (places []int) {
	for start := 0; start < len(text); {
		line, _, _ := strings.Cut(text[start:], "\n")
		places = inLines(ours, places, text, start, start+len(line))
		start += len(line) + 1
	}
	return places
}

// mayBeOurs rules out most lines of ordinary text by their first letter and the signs before it. It
// may return true for ordinary text, which ownLine then checks. It never returns false for a line
// of ours. Only the first line of text counts.
func mayBeOurs(text string) bool {
	dashes, marks := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; classes[c] {
		case letter:
			if i+1 < len(text) && listSign(text[i+1:]) {
				return true
			}
			return promising(c|0x20, dashes, marks) && (i+1 == len(text) || mayFollow(c|0x20, text[i+1]))
		case dash:
			dashes++
		case mark:
			marks++
		case other:
			if c < utf8.RuneSelf {
				return true
			}
			switch r, _ := utf8.DecodeRuneInString(text[i:]); {
			case lookalikes()[r] > '-':
				return promising(lookalikes()[r], dashes, marks)
			case r > 0x400 && r < 0x530, r > 0x4E00 && r < 0xA000, r > 0x3040 && r < 0x30FB, r >= 0xAC00 && r < 0xD7A4: // common letters
				return lookalikes()[r] != 0
			}
			return true
		case newline:
			return false
		}
	}
	return false
}

// promising reports whether a line with this first letter, and these signs before it, may be ours.
// The letters r and v count too: rn looks like m, and vv like w.
func promising(c byte, dashes, marks int) bool {
	switch c {
	case 'y', 's':
		return true
	case 'c', 'e', 'm', 'o', 'w', 'r', 'v':
		return dashes >= 2 || marks > 0
	}
	return false
}

// mayFollow reports whether a line of ours may have this byte after its first letter: the next
// letter, or a sign that does not count.
func mayFollow(c, next byte) bool {
	switch {
	case classes[next] == letter:
		next |= 0x20
	case next < '0' || next > '9':
		return true
	}
	switch c {
	case 'r':
		return next == 'n'
	case 'v':
		return next == 'v'
	}
	for _, b := range beginnings[c] {
		if begins([]byte{c, next}, b.words[:2], false) {
			return true
		}
	}
	return false
}

// listSign reports whether s, which follows a letter, makes that letter the number of a list item:
// a) or b.
func listSign(s string) bool {
	return numbers[s[0]] && (len(s) == 1 || s[1] == ' ' || classes[s[1]] > letter)
}

// numbers holds the signs that make the letter before them the number of a list item.
var numbers = [256]bool{'.': true, ')': true, ':': true}

// classes holds the class of each byte that may stand before the first letter of a line. Bytes of
// no class are skipped.
var classes = func() (all [256]uint8) {
	for c := range all {
		switch {
		case c >= utf8.RuneSelf || c == '<' || c == '&':
			all[c] = other
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			all[c] = letter
		case c == '-':
			all[c] = dash
		case c == '\n':
			all[c] = newline
		case strings.IndexByte("[#"+drawn, byte(c)) >= 0:
			all[c] = mark
		}
	}
	return all
}()

// ordinary holds the letters with which none of our lines begins.
var ordinary = func() (all [256]bool) {
	for c := range all {
		all[c] = classes[c] == letter && !promising(byte(c)|0x20, 0, 0)
	}
	return all
}()

const (
	letter = iota + 1
	dash
	mark
	newline
	other
)

// inLines adds the places in text[start:end]. It has no newline, but may have other line ends.
func inLines(ours *lineTable, places []int, text string, start, end int) []int {
	for i := start; i < end; {
		if c := text[i]; c >= ' ' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if endsLine(r) {
			places = inPieces(ours, places, text, start, i-size)
			start = i
		}
	}
	return inPieces(ours, places, text, start, end)
}

// endsLine reports whether any common reader takes r for the end of a line. Some readers follow
// Unicode, some Python.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// inPieces adds the places in one line. Text after an HTML tag may be shown on a line of its own.
// Control sequences may make a terminal show another line than the one that was written.
func inPieces(ours *lineTable, places []int, text string, start, end int) []int {
	line, rest := text[start:end], text[end:]
	first := len(places)
	starts := []int{0}
	if strings.IndexByte(line, '<') >= 0 {
		for i := range len(line) {
			if line[i] == '>' {
				starts = append(starts, i+1)
			}
		}
	}
	for _, at := range ownPieces(ours, line, starts, rest) {
		places = append(places, start+at)
	}
	for _, shown := range readings(line) {
		for _, at := range ownPieces(ours, string(shown.text), shown.starts, rest) {
			places = append(places, start+shown.from[at])
		}
	}
	slices.Sort(places[first:])
	return append(places[:first], slices.Compact(places[first:])...)
}

// ownPieces returns the places in the pieces of a line that begin at starts. If a piece begins
// among the signs before the first letter of another piece, both have the same answer, and only one
// is checked. So the time stays linear in the number of pieces. Each piece gets a mark of its own,
// because a reader may not see the text before it.
func ownPieces(table *lineTable, line string, starts []int, rest string) (places []int) {
	letter, ours := -1, false // the first letter of the last piece, and its answer
	for _, from := range starts {
		at := 0
		if from > letter {
			at, letter, ours = ownLine(table, line[from:], rest)
			letter += from
		}
		if ours && from < len(line) {
			places = append(places, from+at)
		}
	}
	return places
}

// view returns text as a string that shares its bytes. It is safe because the bytes do not change:
// a prompt file belongs to its template, and the caller of Build leaves an output alone until Build
// has copied it. Copies would double the work.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
