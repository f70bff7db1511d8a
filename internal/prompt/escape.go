package prompt

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Escape makes text safe to be put into a prompt as data. A `\` stands in front of each line that a reader may take for one of
// our own lines: a fence, the heading of the findings, or an id line. Lines are compared as a model reads them and not byte by
// byte (see ownLine). Taking one `\` away from each line that Escape changed gives the text back.
//
// What is not UTF-8, and NUL, which no argument of a program can hold, becomes U+FFFD.
func Escape[T ~string | ~[]byte](text T) string {
	return escape(string(text))
}

// clean is text with U+FFFD for whatever is not UTF-8 and for NUL.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

// escape cleans text, and puts `\` in front of each line that reads like one of ours. Most texts have none, so looking must be
// cheap: one pass over eight bytes at a time that stops at the ends of lines, a glance at how each line begins, and no allocation.
func escape(text string) string {
	places, careful := quickly(text)
	if careful {
		text = clean(text)
		places = carefully(text)
	}
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

// quickly finds where a `\` goes in a clean text whose lines end with \n or \r\n, and says when the text needs more care.
func quickly(text string) (places []int, careful bool) {
	places = inLine(nil, text, 0)
	var wide uint64
	left := unsafe.Slice(unsafe.StringData(text), len(text))
	for ; len(left) >= 32; left = left[32:] {
		w, x, y, z := binary.LittleEndian.Uint64(left), binary.LittleEndian.Uint64(left[8:]), binary.LittleEndian.Uint64(left[16:]), binary.LittleEndian.Uint64(left[24:])
		wide |= w | x | y | z
		if controls(w)|controls(x)|controls(y)|controls(z) == 0 {
			continue
		}
		for k := 0; k < 32; k += 8 {
			for found := controls(binary.LittleEndian.Uint64(left[k:])); found != 0; found &= found - 1 {
				if places, careful = atControl(places, text, len(text)-len(left)+k+bits.TrailingZeros64(found)/8); careful {
					return nil, true
				}
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

// controls are the top bits of those bytes of x that are ASCII controls. A sum of seven-bit bytes carries into the top bit of its own
// byte and no further: here for all that are no controls.
func controls(x uint64) uint64 { return ^(x&^topBits + (0x80-' ')*eachByte | x) & topBits }

func atControl(places []int, text string, at int) ([]int, bool) {
	switch text[at] {
	case '\n':
		if at++; len(text)-at >= 4 {
			c, next := text[at], at+1
			if (c == '-' || c == '|' || c == ' ') && text[next] == ' ' {
				c, next = text[at+2], at+3
			}
			if c == '\n' || ordinary[c] && classes[text[next]] == letter {
				return places, false // as most lines of most texts, also in lists and tables
			}
		}
		return inLine(places, text, at), false
	case '\r':
		return places, at+1 == len(text) || text[at+1] != '\n'
	case 0, '\b', '\v', '\f', '\x1b', '\x1c', '\x1d', '\x1e':
		return nil, true
	}
	return places, false
}

// inLine adds the place in the line that begins at start, if it has one.
func inLine(places []int, text string, start int) []int {
	if !mayBeOurs(text[start:]) {
		return places
	}
	line, _, _ := strings.Cut(text[start:], "\n")
	if at, _, ok := ownLine(line, text[start+len(line):]); ok {
		places = append(places, start+at)
	}
	return places
}

// inTagged adds the places in lines that may have tags of HTML.
func inTagged(places []int, text string) []int {
	for start := 0; ; {
		at := strings.IndexByte(text[start:], '<')
		if at < 0 {
			break
		}
		at += start
		line, _, _ := strings.Cut(text[at:], "\n")
		start = at + len(line)
		places = inPieces(places, text, strings.LastIndexByte(text[:at], '\n')+1, start)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// wideControls are the line ends of Unicode, the control sequence introducer in one character, and the beginning of all tag
// characters, which are letters that no screen shows.
var wideControls = []string{"\u0085", "\u2028", "\u2029", "\u009b", "\xf3\xa0"}

// carefully finds where a `\` goes in any text.
func carefully(text string) (places []int) {
	for start := 0; start < len(text); {
		line, _, _ := strings.Cut(text[start:], "\n")
		places = inLines(places, text, start, start+len(line))
		start += len(line) + 1
	}
	return places
}

// mayBeOurs tells most lines of ordinary text by their first letter and the signs before it. It never takes a line of ours for
// ordinary text: ownLine looks closer. Only the first line of text counts.
func mayBeOurs(text string) bool {
	dashes, marks := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; classes[c] {
		case letter:
			if i+1 < len(text) && listSign(text[i+1:]) {
				return true
			}
			return promising(c|0x20, dashes, marks)
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

// promising says whether a line with this first letter may be ours when such signs stand before it. What looks like m or w with two
// letters begins with r or v.
func promising(c byte, dashes, marks int) bool {
	switch c {
	case 'y', 's':
		return true
	case 'c', 'e', 'm', 'o', 'w', 'r', 'v':
		return dashes >= 2 || marks > 0
	}
	return false
}

// listSign says whether s, which follows a letter, makes that letter the number of an entry in a list: a) or b.
func listSign(s string) bool {
	return (s[0] == '.' || s[0] == ')' || s[0] == ':') && (len(s) == 1 || s[1] == ' ' || classes[s[1]] > letter)
}

// classes of bytes before the first letter of a line. Those of no class are skipped.
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

// ordinary are the letters with which none of our lines begins.
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

// inLines adds the places in text[start:end], which has no newline in it, but maybe other ends of lines.
func inLines(places []int, text string, start, end int) []int {
	for i := start; i < end; {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if endsLine(r) {
			places = inPieces(places, text, start, i-size)
			start = i
		}
	}
	return inPieces(places, text, start, end)
}

// endsLine says whether any common reader takes r for the end of a line. Some do as Unicode says, some as Python does.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// inPieces adds the places in one line. What stands behind a tag of HTML may be shown on a line of its own, and what a terminal
// does with control sequences may show another line than the one that was written.
func inPieces(places []int, text string, start, end int) []int {
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
	for _, at := range ownPieces(line, starts, rest) {
		places = append(places, start+at)
	}
	for _, shown := range readings(line) {
		for _, at := range ownPieces(string(shown.text), shown.starts, rest) {
			places = append(places, start+shown.from[at])
		}
	}
	slices.Sort(places[first:])
	return append(places[:first], slices.Compact(places[first:])...)
}

// ownPieces are the places in the pieces of a line that begin at starts. A piece that begins among the signs before the first letter
// of another says the same, and is not looked at again: however many there are, the time stays in proportion. It gets a mark of its
// own, because what is before it may not be shown.
func ownPieces(line string, starts []int, rest string) (places []int) {
	letter, ours := -1, false // of the last piece
	for _, from := range starts {
		at := 0
		if from > letter {
			at, letter, ours = ownLine(line[from:], rest)
			letter += from
		}
		if ours && from < len(line) {
			places = append(places, from+at)
		}
	}
	return places
}

// view is text as a string that shares its bytes, which nobody changes any more: a prompt file belongs to its template, and an
// output stands still until Build has copied it. Copies of both would double the work.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
