package line

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// picture is the place of an error in the text, as two lines: what stands there, and carets below it. Long lines are cut around the place,
// and whatever could move a cursor is replaced, so that the carets stand where they should.
func (e *Error) picture(text string) string {
	const around = 60 // bytes on each side
	start := max(0, min(e.Start, len(text)))
	end := max(start, min(e.End, len(text)))
	from := strings.LastIndexAny(text[:start], "\r\n") + 1
	to := len(text)
	if n := strings.IndexAny(text[start:], "\r\n"); n >= 0 {
		to = start + n
	}
	end = min(max(end, start), to)
	before, behind := "", ""
	if start-from > around {
		from, before = start-around, "…"
	}
	if end-start > around {
		end = start + around
	}
	if to-end > around {
		to, behind = end+around, "…"
	}
	shown := before + plain(text[from:start])
	place, rest := plain(text[start:end]), plain(text[end:to])
	return shown + place + rest + behind + "\n" + strings.Repeat(" ", width(shown)) + strings.Repeat("^", max(1, width(place)))
}

// plain is text in which every character has its place: blanks for tabs, U+FFFD for what cannot be shown or was cut in two.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// width is how many columns a text takes in a terminal: two for the letters of East Asia and for pictures, none for marks that
// stand on the letter before them.
func width(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
			r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
			n += 2
		default:
			n++
		}
	}
	return n
}
